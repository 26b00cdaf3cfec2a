// SPDX-License-Identifier: MIT
// What a person can do, by its name in package.json.
import * as vscode from "vscode";
import type { GpuRecord } from "./client";
import { pathOf } from "./core";
import { dump } from "./dump";
import { handOver } from "./handover";
import { chooseLane } from "./lanes/choose";
import { COMMAND as LANES_ACTION } from "./lanes/page";
import type { LaneTables } from "./lanes/panel";
import { pickProcess } from "./picker";
import { pinRecord, RecordFiles, removeRecord, saveRecord, showRecord } from "./records";
import { request } from "./requests";
import { Session, Sessions } from "./sessions";
import { chosenFiles, compareFiles, compareLater, saveSnapshot } from "./snapshots";
import { attach, openCore } from "./start";
import type { Texts } from "./texts";
import type { Place } from "./view/node";
import { ProcessNode } from "./view/process";
import { RecordNode, Records } from "./view/records";
import { Row } from "./view/row";
import type { Tree } from "./view/tree";
import type { Watcher } from "./watcher";

const NOTICE_MS = 5000;

/** What commands work on. */
export interface Parts {
	sessions: Sessions;
	tree: Tree;
	stored: Records;
	files: RecordFiles;
	texts: Texts;
	watcher: Watcher;
	lanes: LaneTables;
}

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

/** Of the wave of a row, which is gone to, or of the one that the editor shows. */
async function showLanes({ sessions, lanes }: Parts, row: unknown): Promise<void> {
	const place = row instanceof Row ? row.node.place : undefined;
	const session = place?.session ?? sessions.active();
	if (place)
		await place.session.show(place.focus);
	if (session)
		await lanes.show(session);
}

/** The process of a row; undefined for what is none. */
function processOf(row: unknown): number | undefined {
	return row instanceof Row && row.node instanceof ProcessNode ? row.node.process.pid : undefined;
}

/** The process of a row, or one that is asked for. */
async function chosenProcess(row: unknown): Promise<number | undefined> {
	return processOf(row) ?? (Number(await pickProcess()) || undefined);
}

async function writeCore(sessions: Sessions, row?: unknown): Promise<void> {
	const pid = await chosenProcess(row);
	const file = pid ? await dump(pid) : undefined;
	if (file && await vscode.window.showInformationMessage(`The core file is written: ${file}`, "Open"))
		await openCore(sessions, file);
}

/** The core file of a record in a place of one's own. */
async function saveAs(sessions: Sessions, record: GpuRecord): Promise<void> {
	const file = await saveRecord(record);
	if (file && await vscode.window.showInformationMessage(`The core file is written: ${file}`, "Open"))
		await openCore(sessions, file);
}

/** Failures of what a person has asked for are told. */
function told<A extends unknown[]>(f: (...args: A) => Promise<void>): (...args: A) => Promise<void> {
	return (...args) => f(...args).catch((error: unknown) => {
		void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
	});
}

async function writeSnapshot(row: unknown): Promise<void> {
	const pid = await chosenProcess(row);
	const file = pid ? await saveSnapshot(pid) : undefined;
	if (file)
		void vscode.window.showInformationMessage(`The snapshot is saved: ${file}`);
}

async function compareWithLater(texts: Texts, row: unknown): Promise<void> {
	const pid = await chosenProcess(row);
	if (pid)
		await compareLater(texts, pid);
}

async function compareChosen(texts: Texts, chosen: unknown): Promise<void> {
	const files = await chosenFiles(chosen);
	if (files)
		await compareFiles(texts, files);
}

/** The process of a row, or of the session that the editor shows. */
async function continueElsewhere({ sessions, watcher }: Parts, row: unknown): Promise<void> {
	const pid = processOf(row) ?? sessions.active()?.pid ?? await chosenProcess(undefined);
	if (pid === undefined)
		return;
	await watcher.leave(pid);
	await handOver(sessions, pid);
}

/** What is done with the record of a row, or of the row that was clicked; the view shows what it has become. */
function ofRecords({ sessions, stored, files, texts }: Parts): Record<string, (row: unknown) => Promise<void>> {
	const does = (f: (record: GpuRecord) => Promise<void>) => async (row: unknown): Promise<void> => {
		const node = row instanceof Row ? row.node : await stored.selected();
		if (node instanceof RecordNode)
			await f(node.record).finally(() => stored.refresh());
	};
	return {
		showRecord: does((r) => showRecord(files, texts, r)),
		saveRecord: does((r) => saveAs(sessions, r)),
		pinRecord: does((r) => pinRecord(r, true)),
		unpinRecord: does((r) => pinRecord(r, false)),
		removeRecord: does(removeRecord),
		refreshRecords: () => stored.refresh(),
	};
}

export function commands(parts: Parts): vscode.Disposable[] {
	const { sessions, tree, texts } = parts;
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
		chooseLane: active(chooseLane),
		showLanes: (row: unknown) => showLanes(parts, row),
		pause: active(pause),
		pauseAll: every(pause),
		continueAll: every(goOn),
		show: async () => show((await tree.selected())?.place),
		dump: (row: unknown) => writeCore(sessions, row),
		refresh: () => tree.refreshAll(),
		saveSnapshot: writeSnapshot,
		compareLater: (row: unknown) => compareWithLater(texts, row),
		compareSnapshots: () => compareChosen(texts, undefined),
		// The explorer gives the file that was clicked, and all that are chosen.
		compareFiles: (_: unknown, chosen: unknown) => compareChosen(texts, chosen),
		continueInRocgdb: (row: unknown) => continueElsewhere(parts, row),
		continueInCudaGdb: (row: unknown) => continueElsewhere(parts, row),
		...ofRecords(parts),
	};
	return [
		vscode.commands.registerCommand(LANES_ACTION, told((id: unknown, action: unknown, n: unknown) => parts.lanes.act(id, action, n))),
		...Object.entries(table).map(([name, f]) => vscode.commands.registerCommand(`gpu-agent.${name}`, told(f as () => Promise<void>))),
		vscode.commands.registerCommand("gpu-agent.pickProcess", (config?: vscode.DebugConfiguration) => pickProcess(config?.socket)),
	];
}
