// SPDX-License-Identifier: MIT
// gpu-agentctl, which is the adapter and does what needs no session.
import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { setting, socketSetting } from "./settings";

export function program(): string {
	return setting("path") || process.env.GPU_AGENT_CTL || "gpu-agentctl";
}

export function environment(socket?: string): Record<string, string> {
	return socket ? { GPU_AGENT_SOCKET: socket } : {};
}

/** What a program says on standard output at most. */
const OUTPUT_BYTES = 64 << 20;

export interface Ended {
	code: number;
	stdout: string;
	stderr: string;
}

/** Runs gpu-agentctl to its end, or until it is cancelled.  @throws when it cannot be started */
export function run(argv: string[], cancel?: vscode.CancellationToken, socket?: string): Promise<Ended> {
	return new Promise((resolve, reject) => {
		const env = { ...process.env, ...environment(socketSetting(socket)) };
		const child = execFile(program(), argv, { env, maxBuffer: OUTPUT_BYTES }, (error, stdout, stderr) => {
			if (error && typeof error.code !== "number" && !error.signal)
				reject(new Error(error.message));
			else
				resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr });
		});
		cancel?.onCancellationRequested(() => child.kill("SIGINT"));
	});
}

/** Exit statuses with which what was printed counts: a part is missing, which it says itself, or no progress. */
const PARTIAL = 8;
const NO_PROGRESS = 10;

/** What gpu-agentctl prints.  @throws what it says when it fails */
export async function agentctl(argv: string[], socket?: string): Promise<Ended> {
	const ended = await run(argv, undefined, socket);
	if (ended.code !== 0 && ended.code !== PARTIAL && ended.code !== NO_PROGRESS)
		throw new Error(ended.stderr.trim() || `gpu-agentctl ${argv[0]}: exit status ${ended.code}`);
	return ended;
}
