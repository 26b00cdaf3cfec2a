// SPDX-License-Identifier: MIT
// What a person can do, by its name in package.json.
import * as vscode from "vscode";
import { pathOf } from "./core";
import { dump } from "./dump";
import { chooseLane } from "./lanes";
import { pickProcess } from "./picker";
import { request } from "./requests";
import { Session, Sessions } from "./sessions";
import { attach, openCore } from "./start";
import type { Place } from "./view/node";
import { ProcessNode } from "./view/process";
import { Row } from "./view/row";
import type { Tree } from "./view/tree";

const NOTICE_MS = 5000;

/** The file that was chosen in the explorer, the one that its page names, or one that is asked for. */
async function coreFile(sessions: Sessions, chosen?: unknown): Promise<void> {
	if (typeof chosen === "string")
		return openCore(sessions, chosen);
	const uri = chosen instanceof vscode.Uri ? chosen :
		(await vscode.window.showOpenDialog({ title: "Core file", openLabel: "Open" }))?.[0];
	if (uri)
		await openCore(sessions, pathOf(uri));
}

/** From another client of the same user, or as an administrator. */
async function takeControl(session: Session): Promise<void> {
	await request(session.debug, "gpuAgent/takeControl", undefined);
	vscode.window.setStatusBarMessage("This session controls the GPU process", NOTICE_MS);
}

/** Also where the editor takes the session for stopped already.  The answer to a failure shows itself. */
async function pause(session: Session): Promise<void> {
	await request(session.debug, "pause", { threadId: 1 }).catch(() => undefined);
}

async function goOn(session: Session): Promise<void> {
	await request(session.debug, "continue", { threadId: 1 }).catch(() => undefined);
}

async function show(place?: Place): Promise<void> {
	if (place && !await place.session.show(place.focus))
		vscode.window.setStatusBarMessage("It runs: pause the GPU to go there", NOTICE_MS);
}

/** The process of a row; undefined for what is none. */
function processOf(row: unknown): number | undefined {
	return row instanceof Row && row.node instanceof ProcessNode ? row.node.process.pid : undefined;
}

async function writeCore(sessions: Sessions, row?: unknown): Promise<void> {
	const pid = processOf(row) ?? Number(await pickProcess());
	const file = pid ? await dump(pid) : undefined;
	if (file && await vscode.window.showInformationMessage(`The core file is written: ${file}`, "Open"))
		await openCore(sessions, file);
}

/** Failures of what a person has asked for are told. */
function told<A extends unknown[]>(f: (...args: A) => Promise<void>): (...args: A) => Promise<void> {
	return (...args) => f(...args).catch((error: unknown) => {
		void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
	});
}

export function commands(sessions: Sessions, tree: Tree): vscode.Disposable[] {
	const active = (f: (s: Session) => Promise<void>) => async (): Promise<void> => {
		const session = sessions.active();
		if (session)
			await f(session);
	};
	const every = (f: (s: Session) => Promise<void>) => async (): Promise<void> => {
		await Promise.all(sessions.all().filter((s) => s.pid !== undefined).map(f));
	};
	const table: Record<string, (...args: never[]) => Promise<unknown>> = {
		attach: () => attach(),
		attachProcess: (row: unknown) => attach(processOf(row)),
		openCore: (chosen: unknown) => coreFile(sessions, chosen),
		takeControl: active(takeControl),
		chooseLane: active((s) => chooseLane(s.debug)),
		pause: active(pause),
		pauseAll: every(pause),
		continueAll: every(goOn),
		show: async () => show(await tree.selected()),
		dump: (row: unknown) => writeCore(sessions, row),
		refresh: () => tree.refresh(),
	};
	return [
		...Object.entries(table).map(([name, f]) => vscode.commands.registerCommand(`gpu-agent.${name}`, told(f as () => Promise<void>))),
		vscode.commands.registerCommand("gpu-agent.pickProcess", (config?: vscode.DebugConfiguration) => pickProcess(config?.socket)),
	];
}
