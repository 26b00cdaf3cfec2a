// SPDX-License-Identifier: MIT
// Lanes of the wave that the editor shows: the values and frames of one of them are shown.
import * as vscode from "vscode";
import { Lane, request } from "../requests";
import type { Session } from "../sessions";

interface Item extends vscode.QuickPickItem {
	lane: number;
}

/** What is known of a lane besides its number. */
export function factsOf(l: Lane): string {
	const facts = [l.active ? "active" : "inactive", `pc ${l.pc}`];
	if (l.workItem)
		facts.unshift(`(${l.workItem.join(", ")})`);
	return facts.join(", ");
}

function item(l: Lane): Item {
	return {
		lane: l.lane,
		label: `${l.shown ? "$(check) " : ""}lane ${l.lane}`,
		description: factsOf(l),
		detail: l.exception,
	};
}

/** Of the wave that the editor shows. */
export async function chooseLane(session: Session): Promise<void> {
	const { threadId, wave, lanes } = await session.shownLanes({}, false);
	const chosen = await vscode.window.showQuickPick(lanes.map(item), {
		title: `Lanes of ${wave}`, placeHolder: "Lane whose variables and frames are shown", matchOnDescription: true, matchOnDetail: true,
	});
	if (chosen)
		await request(session.debug, "gpuAgent/lanes", { threadId, lane: chosen.lane });
}
