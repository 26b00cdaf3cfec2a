// SPDX-License-Identifier: MIT
// What editor and adapter say to each other, one JSON document a line.
import * as fs from "node:fs";
import * as vscode from "vscode";

export function wireTrace(file: string): vscode.DebugAdapterTrackerFactory {
	return {
		createDebugAdapterTracker: ({ id }) => {
			const write = (line: object): void =>
				fs.appendFileSync(file, JSON.stringify({ session: id, ...line }) + "\n");
			return {
				onWillReceiveMessage: (message: unknown) => write({ to: "adapter", message }),
				onDidSendMessage: (message: unknown) => write({ to: "editor", message }),
				onError: (error) => write({ error: error.message }),
				onExit: (code, signal) => write({ exit: code ?? null, signal: signal ?? null }),
			};
		},
	};
}
