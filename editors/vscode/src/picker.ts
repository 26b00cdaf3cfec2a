// SPDX-License-Identifier: MIT
// Asks which process is meant.
import * as vscode from "vscode";
import { defaultSocket, Process } from "./client";
import { commandLineOf, factsOf, failure, nameOf, processes, whyNot } from "./processes";
import { socketSetting } from "./settings";
import { spelled } from "./spelled";

interface Item extends vscode.QuickPickItem {
	pid: number;
}

/** In a list to choose from, `$(name)` would be drawn as an icon. */
function plain(text: string): string {
	return text.replace(/\$\(/g, "$ (");
}

function item(p: Process): Item {
	return {
		pid: p.pid,
		label: `$(${p.debuggable ? "circuit-board" : "circle-slash"}) ${plain(nameOf(p))}`,
		description: plain(factsOf(p).join(", ")),
		detail: plain(whyNot(p) ?? commandLineOf(p) ?? spelled(p.exe ?? "")),
	};
}

/** @returns undefined when nothing was chosen, or nothing can be; why, has been said then */
export async function pickProcess(ofConfiguration?: unknown): Promise<string | undefined> {
	const socket = socketSetting(ofConfiguration) ?? defaultSocket();
	try {
		const items = (await processes(socket)).map(item);
		if (!items.length) {
			void vscode.window.showInformationMessage("No process that you may see uses a GPU.");
			return undefined;
		}
		const chosen = await vscode.window.showQuickPick(items, {
			title: "GPU process", placeHolder: "Process to attach to", matchOnDescription: true, matchOnDetail: true,
		});
		return chosen && String(chosen.pid);
	} catch (error) {
		void vscode.window.showErrorMessage(failure(socket, error));
		return undefined;
	}
}
