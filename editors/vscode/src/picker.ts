// SPDX-License-Identifier: MIT
// Processes that use a GPU, as the agent lists them.
import * as vscode from "vscode";
import { Client, defaultSocket, Process } from "./client";
import { socketSetting } from "./settings";

interface Item extends vscode.QuickPickItem {
	pid: number;
}

function count(n: number, noun: string): string {
	return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

function item(p: Process): Item {
	const facts = [p.vendor === "amd" ? "AMD" : "NVIDIA", count(p.gpu_ids.length, "device"), count(p.queues, "queue")];
	if (p.ns_pid)
		facts.push(`${p.ns_pid} in its container`);
	if (p.container)
		facts.push(p.container);
	return {
		pid: p.pid,
		label: `$(${p.debuggable ? "circuit-board" : "circle-slash"}) ${p.pid} ${p.comm}`,
		description: facts.join(", "),
		detail: p.debuggable ? p.exe : `Cannot be debugged: ${p.reason ?? "the agent does not say why"}`,
	};
}

async function processes(socket: string): Promise<Item[]> {
	const agent = await Client.connect(socket);
	try {
		const list = (await agent.processList()).processes;
		return [...list.filter((p) => p.debuggable), ...list.filter((p) => !p.debuggable)].map(item);
	} finally {
		await agent.close();
	}
}

function say(socket: string, error: unknown): void {
	const code = (error as NodeJS.ErrnoException).code;
	const absent = code === "ENOENT" || code === "ECONNREFUSED";
	const text = error instanceof Error ? error.message : String(error);
	void vscode.window.showErrorMessage(absent ? `No GPU agent listens on ${socket}: start gpu-agentd.socket, ` +
		"gpu-agentd --user, or say in the setting gpuAgent.socket where it is." : `GPU agent: ${text}`);
}

/** @returns undefined when nothing was chosen, or nothing can be; why, has been said then */
export async function pickProcess(ofConfiguration?: unknown): Promise<string | undefined> {
	const socket = socketSetting(ofConfiguration) ?? defaultSocket();
	try {
		const items = await processes(socket);
		if (!items.length) {
			void vscode.window.showInformationMessage("No process that you may see uses a GPU.");
			return undefined;
		}
		const chosen = await vscode.window.showQuickPick(items, {
			title: "GPU process", placeHolder: "Process to attach to", matchOnDescription: true, matchOnDetail: true,
		});
		return chosen && String(chosen.pid);
	} catch (error) {
		say(socket, error);
		return undefined;
	}
}
