// SPDX-License-Identifier: MIT
// Beginning to debug a process, or a core file.
import * as path from "node:path";
import * as vscode from "vscode";
import { TYPE } from "./sessions";

export function attachTo(target: { pid: string } | { coreFile: string }, name = "GPU process"): vscode.DebugConfiguration {
	return { type: TYPE, request: "attach", name, ...target };
}

/** Asks for the process when none is named. */
export async function attach(pid?: number): Promise<void> {
	await vscode.debug.startDebugging(undefined, pid === undefined ? { type: TYPE, request: "attach", name: "GPU process" } :
		attachTo({ pid: String(pid) }, `GPU process ${pid}`));
}

export async function openCore(file: string): Promise<void> {
	await vscode.debug.startDebugging(undefined, attachTo({ coreFile: file }, `GPU core ${path.basename(file)}`));
}
