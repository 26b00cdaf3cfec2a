// SPDX-License-Identifier: MIT
// Lanes of the wave that the editor shows: the values and frames of one of them are shown.
import * as vscode from "vscode";

interface Lane {
	lane: number;
	active: boolean;
	shown: boolean;
	pc: string;
	workItem?: number[];
	exception?: string;
}

interface Lanes {
	threadId: number;
	wave: string;
	lanes: Lane[];
}

interface Item extends vscode.QuickPickItem {
	lane: number;
}

function item(l: Lane): Item {
	const facts = [l.active ? "active" : "inactive", `pc ${l.pc}`];
	if (l.workItem)
		facts.unshift(`(${l.workItem.join(", ")})`);
	return {
		lane: l.lane,
		label: `${l.shown ? "$(check) " : ""}lane ${l.lane}`,
		description: facts.join(", "),
		detail: l.exception,
	};
}

/** Of the thread whose frames were shown last. */
export async function chooseLane(session: vscode.DebugSession): Promise<void> {
	const { threadId, wave, lanes } = await session.customRequest("gpuAgent/lanes") as Lanes;
	const chosen = await vscode.window.showQuickPick(lanes.map(item), {
		title: `Lanes of ${wave}`, placeHolder: "Lane whose variables and frames are shown", matchOnDescription: true, matchOnDetail: true,
	});
	if (chosen)
		await session.customRequest("gpuAgent/lanes", { threadId, lane: chosen.lane });
}
