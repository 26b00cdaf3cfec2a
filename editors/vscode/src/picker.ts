// SPDX-License-Identifier: MIT
// Asks which process is meant.
import * as vscode from "vscode";
import { defaultSocket, Process } from "./client";
import { factsOf, failure, processes, whyNot } from "./processes";
import { socketSetting } from "./settings";

interface Item extends vscode.QuickPickItem {
	pid: number;
}

function item(p: Process): Item {
	return {
		pid: p.pid,
		label: `$(${p.debuggable ? "circuit-board" : "circle-slash"}) ${p.pid} ${p.comm}`,
		description: factsOf(p).join(", "),
		detail: whyNot(p) ?? p.exe,
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
