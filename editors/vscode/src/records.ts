// SPDX-License-Identifier: MIT
// Records that the agent has stored, and their core files.
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { Client, defaultSocket, GpuRecord } from "./client";
import { agentctl, run } from "./program";
import { socketSetting } from "./settings";
import { spelled } from "./spelled";
import type { Texts } from "./texts";

async function withAgent<T>(socket: string, f: (agent: Client) => Promise<T>): Promise<T> {
	const agent = await Client.connect(socket);
	try {
		return await f(agent);
	} finally {
		await agent.close();
	}
}

const socketOfAgent = (): string => socketSetting() ?? defaultSocket();

/** The newest first. */
export async function records(socket: string, matches?: string[], sinceUs?: number): Promise<GpuRecord[]> {
	const list = await withAgent(socket, (agent) => agent.coresList({ matches, since_us: sinceUs }));
	return list.records.reverse();
}

/** Core files of records, for as long as a tab shows them. */
export class RecordFiles {
	constructor(private readonly directory: string) {}

	/** Removes those that no tab shows: they can be had again. */
	async clean(): Promise<void> {
		const shown = new Set(vscode.window.tabGroups.all.flatMap((group) => group.tabs).map((tab) => tab.input)
			.flatMap((i) => i instanceof vscode.TabInputCustom ? [i.uri.fsPath] : []));
		const names = await fs.promises.readdir(this.directory).catch(() => []);
		await Promise.all(names.map((name) => path.join(this.directory, name)).filter((file) => !shown.has(file))
			.map((file) => fs.promises.rm(file, { force: true })));
	}

	/** @returns the file; undefined when nobody waits for it any more */
	async fileOf(record: GpuRecord): Promise<string | undefined> {
		const file = path.join(this.directory, nameOf(record));
		if (fs.statSync(file, { throwIfNoEntry: false })?.isFile())
			return file;
		await fs.promises.mkdir(this.directory, { recursive: true, mode: 0o700 });
		return await exportTo(record, file) ? file : undefined;
	}
}

function nameOf(record: GpuRecord): string {
	return `${record.record}.gpucore${record.zstd ? ".zst" : ""}`;
}

/** @returns whether it is there: nobody has cancelled it */
function exportTo(record: GpuRecord, file: string): Thenable<boolean> {
	return vscode.window.withProgress(
		{ location: vscode.ProgressLocation.Notification, title: `Core file of process ${record.pid}`, cancellable: true },
		async (_, cancel) => {
			const ended = await run(["cores", "export", `RECORD=${record.record}`, "-o", file], cancel);
			if (ended.code && !cancel.isCancellationRequested)
				throw new Error(ended.stderr.trim());
			return ended.code === 0;
		});
}

/** As a double click on its core file does; what has none is a text. */
export async function showRecord(files: RecordFiles, texts: Texts, record: GpuRecord): Promise<void> {
	if (record.body !== "present") {
		await texts.show({
			name: `${record.record}.txt`,
			text: (await agentctl(["cores", "info", "--color=never", `RECORD=${record.record}`])).stdout,
		});
		return;
	}
	const file = await files.fileOf(record);
	if (file)
		await vscode.commands.executeCommand("vscode.openWith", vscode.Uri.file(file), "gpu-agent.core");
}

/** @returns the file that a person has chosen */
export async function saveRecord(record: GpuRecord): Promise<string | undefined> {
	const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? process.env.HOME ?? "/tmp";
	const place = await vscode.window.showSaveDialog({
		title: `Core file of record ${record.record}`, saveLabel: "Save", defaultUri: vscode.Uri.file(path.join(folder, nameOf(record))),
	});
	return place && await exportTo(record, place.fsPath) ? place.fsPath : undefined;
}

export async function pinRecord(record: GpuRecord, pinned: boolean): Promise<void> {
	await withAgent(socketOfAgent(), (agent) => agent.coresPin({ record: record.record, pinned }));
}

/** Asks before. */
export async function removeRecord(record: GpuRecord): Promise<void> {
	if (record.pinned)
		throw new Error(`Record ${record.record} is pinned and stays: unpin it before you remove it.`);
	const detail = `Record ${record.record} of process ${record.pid}${record.comm ? ` ${spelled(record.comm)}` : ""}` +
		(record.body === "present" ? ", with its core file." : ".");
	if (await vscode.window.showWarningMessage("Remove the stored record?", { modal: true, detail }, "Remove") === "Remove")
		await withAgent(socketOfAgent(), (agent) => agent.coresRemove({ record: record.record }));
}
