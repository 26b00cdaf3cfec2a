// SPDX-License-Identifier: MIT
// Beginning to debug a process, or a core file.
import * as path from "node:path";
import * as vscode from "vscode";
import { Sessions, TYPE } from "./sessions";

export function attachTo(target: { pid: string } | { coreFile: string }, name = "GPU process"): vscode.DebugConfiguration {
	return { type: TYPE, request: "attach", name, ...target };
}

/** Asks for the process when none is named. */
export async function attach(pid?: number, socket?: string): Promise<void> {
	await vscode.debug.startDebugging(undefined, pid === undefined ? { type: TYPE, request: "attach", name: "GPU process" } :
		{ ...attachTo({ pid: String(pid) }, `GPU process ${pid}`), ...(socket === undefined ? {} : { socket }) });
}

/** Core files whose session is about to begin. */
const opening = new Set<string>();

/** One that is open already is shown: a double click opens it twice. */
export async function openCore(sessions: Sessions, file: string): Promise<void> {
	if (opening.has(file) || sessions.hasCore(file)) {
		await vscode.commands.executeCommand("workbench.view.debug");
		return;
	}
	opening.add(file);
	try {
		await vscode.debug.startDebugging(undefined, attachTo({ coreFile: file }, `GPU core ${path.basename(file)}`));
	} finally {
		opening.delete(file);
	}
}
