// SPDX-License-Identifier: MIT
// A core file of a process, which runs on.
import * as path from "node:path";
import * as vscode from "vscode";
import { run } from "./program";

/** Exit status of a file that lacks something, which it says itself. */
const PARTIAL = 8;

/** @returns the file; undefined when nobody wanted it, or it failed, which was said */
export async function dump(pid: number): Promise<string | undefined> {
	const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? process.env.HOME ?? "/tmp";
	const place = await vscode.window.showSaveDialog({
		title: `Core file of process ${pid}`, saveLabel: "Write", defaultUri: vscode.Uri.file(path.join(folder, `${pid}.gpucore`)),
	});
	if (!place)
		return undefined;
	const ended = await vscode.window.withProgress(
		{ location: vscode.ProgressLocation.Notification, title: `Writing a core file of process ${pid}`, cancellable: true },
		(_, cancel) => run(["dump", String(pid), "-o", place.fsPath], cancel).then((e) => cancel.isCancellationRequested ? undefined : e));
	if (!ended)
		return undefined;
	if (ended.code !== 0 && ended.code !== PARTIAL) {
		void vscode.window.showErrorMessage(ended.stderr.trim());
		return undefined;
	}
	return place.fsPath;
}
