// SPDX-License-Identifier: MIT
// From us to the vendor's debugger.  A process has one debugger at a time: we let go of it before.
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import * as vscode from "vscode";
import { agentctl } from "./program";
import { Session, Sessions, TYPE } from "./sessions";

/** An adapter that takes longer to leave is not waited for: gpu-agentctl then says who holds the process. */
const LEAVE_MS = 10000;
const PROMPT_MS = 1000;

interface HandedOver {
	pid: number;
	command: string[];
}

async function leave(session: Session): Promise<void> {
	const over = new Promise<void>((resolve) => {
		const timer = setTimeout(() => { listener.dispose(); resolve(); }, LEAVE_MS);
		const listener = vscode.debug.onDidTerminateDebugSession((s) => {
			if (s.id === session.id) {
				clearTimeout(timer);
				listener.dispose();
				resolve();
			}
		});
	});
	await vscode.debug.stopDebugging(session.debug);
	await over;
}

/** Whether this machine has a program where the editor looks; a shell of one's own may look in more places. */
async function isInstalled(name: string): Promise<boolean> {
	const places = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
	const found = await Promise.all(places.map((place) => access(join(place, name), constants.X_OK).then(() => true, () => false)));
	return found.includes(true);
}

function quoted(word: string): string {
	return /^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * Ends our sessions of a process, and types the command of its vendor's debugger into a terminal, where
 * a person is to start it.
 */
export async function handOver(sessions: Sessions, pid: number): Promise<void> {
	const ours = sessions.all().filter((s) => s.pid === pid && s.debug.type === TYPE);
	const socket = ours.map((s) => s.debug.configuration.socket as unknown).find((s): s is string => typeof s === "string");
	await Promise.all(ours.map(leave));
	const { command } = JSON.parse((await agentctl(["attach", String(pid), "--hand-over", "-j"], socket)).stdout) as HandedOver;
	const terminal = vscode.window.createTerminal({ name: `${command[0]} ${pid}` });
	terminal.show();
	// What is typed before the shell has its prompt is shown twice, and nothing tells that it has.
	await terminal.processId;
	await new Promise((resolve) => setTimeout(resolve, PROMPT_MS));
	terminal.sendText(command.map(quoted).join(" "), false);
	const gone = `GPU agent has let go of process ${pid}, which runs.`;
	if (await isInstalled(command[0]))
		void vscode.window.showInformationMessage(`${gone} Press Enter in the terminal to start ${command[0]}.`);
	else
		void vscode.window.showWarningMessage(
			`${gone} ${command[0]} is not in the path of the editor. Press Enter in the terminal to start it if your shell knows where it is.`);
}
