// SPDX-License-Identifier: MIT
// Which vendor's debugger may go on where we stop: the context gpuAgent.vendor, of the process that the editor shows.
import * as vscode from "vscode";
import type { Sessions } from "./sessions";

const CONTEXT = "gpuAgent.vendor";
/** By the vendor's number on PCI. */
const VENDORS = new Map([[0x1002, "amd"], [0x10de, "nvidia"]]);

async function vendorOfActive(sessions: Sessions): Promise<string | undefined> {
	const session = sessions.active();
	if (session?.pid === undefined)
		return undefined;
	const devices = (await session.groups().catch(() => undefined))?.devices ?? [];
	return devices.length ? VENDORS.get(devices[0].vendor_id) : undefined;
}

export function vendorContext(sessions: Sessions): vscode.Disposable[] {
	const show = async (): Promise<void> => {
		await vscode.commands.executeCommand("setContext", CONTEXT, await vendorOfActive(sessions));
	};
	return [sessions.onDidChange(() => void show()), vscode.debug.onDidChangeActiveDebugSession(() => void show())];
}
