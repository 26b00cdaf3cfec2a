// SPDX-License-Identifier: MIT
// Snapshots of a process that are saved, and two of them side by side, beneath what they say together.
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { pathOf } from "./core";
import { nameOf } from "./processes";
import { agentctl } from "./program";
import type { Texts } from "./texts";

/** Between two snapshots of a process: what moves has moved by then. */
const LATER_MS = 2000;

interface Comparison {
	process: { pid: number; comm: string };
	verdict: string;
	interval_us: number;
}

interface Saved {
	time_us: number;
}

async function save(pid: number, file: string): Promise<void> {
	await agentctl(["snapshot", String(pid), "-j", "-o", file]);
}

/** @returns the file; undefined when nobody wanted it */
export async function saveSnapshot(pid: number): Promise<string | undefined> {
	const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? process.env.HOME ?? "/tmp";
	const place = await vscode.window.showSaveDialog({
		title: `Snapshot of process ${pid}`, saveLabel: "Save", defaultUri: vscode.Uri.file(path.join(folder, `${pid}.gpusnapshot.json`)),
	});
	if (place)
		await save(pid, place.fsPath);
	return place?.fsPath;
}

async function inTemporaryDirectory(f: (directory: string) => Promise<void>): Promise<void> {
	const directory = await fs.promises.mkdtemp(path.join(os.tmpdir(), "gpu-agent-"));
	try {
		await f(directory);
	} finally {
		await fs.promises.rm(directory, { recursive: true, force: true });
	}
}

/** The snapshot that is in a core file, or that the file is. */
async function snapshotOf(file: string, place: string): Promise<Saved> {
	await agentctl(["analyze", "-j", "-o", place, "--", file]);
	return JSON.parse(await fs.promises.readFile(place, "utf8")) as Saved;
}

/** Two that lie in files, the earlier one first. */
async function showBoth(texts: Texts, files: [string, string], names: [string, string]): Promise<void> {
	const judged = JSON.parse((await agentctl(["diff", "-j", "--", ...files])).stdout) as Comparison;
	const said = (await agentctl(["diff", "--color=never", "--", ...files])).stdout;
	const [before, after] = await Promise.all(files.map(async (file, i) => {
		const { stdout } = await agentctl(["analyze", "--color=never", "--", file]);
		// The editor takes what ends like a file of data for one.
		return { name: `${names[i]}.txt`, text: `${said.trimEnd()}\n\n${"─".repeat(72)}\n\n${stdout}` };
	}));
	const { process: p, verdict, interval_us: us } = judged;
	await texts.compare(before, after, `${verdict.toUpperCase()}: ${nameOf(p)}, ${(us / 1e6).toFixed(1)} s apart`);
}

/** Saved snapshots or core files, in any order. */
export async function compareFiles(texts: Texts, files: string[]): Promise<void> {
	if (files.length !== 2)
		throw new Error(`Two snapshots or core files are compared, not ${files.length}.`);
	await inTemporaryDirectory(async (directory) => {
		const all = await Promise.all(files.map(async (file, i) => {
			const place = path.join(directory, `${i}.json`);
			return { name: path.basename(file), place, time: (await snapshotOf(file, place)).time_us };
		}));
		const [a, b] = all.sort((x, y) => x.time - y.time);
		await showBoth(texts, [a.place, b.place], [a.name, b.name]);
	});
}

/** Of a process as it is, and as it is somewhat later. */
export async function compareLater(texts: Texts, pid: number): Promise<void> {
	await inTemporaryDirectory(async (directory) => {
		const files: [string, string] = [path.join(directory, "before.json"), path.join(directory, "after.json")];
		const wanted = await vscode.window.withProgress(
			{ location: vscode.ProgressLocation.Notification, title: `Looking twice at process ${pid}`, cancellable: true },
			async (_, cancel) => {
				await save(pid, files[0]);
				await new Promise((resolve) => {
					const timer = setTimeout(resolve, LATER_MS);
					cancel.onCancellationRequested(() => { clearTimeout(timer); resolve(undefined); });
				});
				if (!cancel.isCancellationRequested)
					await save(pid, files[1]);
				return !cancel.isCancellationRequested;
			});
		if (wanted)
			await showBoth(texts, files, [`${pid} before`, `${pid} after`]);
	});
}

/** Two of the explorer, or two that are asked for. */
export async function chosenFiles(chosen: unknown): Promise<string[] | undefined> {
	const uris = Array.isArray(chosen) ? chosen as vscode.Uri[] :
		await vscode.window.showOpenDialog({ title: "Two snapshots or core files", openLabel: "Compare", canSelectMany: true });
	if (!uris)
		return undefined;
	if (uris.length !== 1 || Array.isArray(chosen))
		return uris.map(pathOf);
	// Where only one can be chosen at once, the other is asked for.
	const more = await vscode.window.showOpenDialog({ title: `Snapshot or core file to compare with ${path.basename(uris[0].path)}`, openLabel: "Compare" });
	return more && [...uris, ...more].map(pathOf);
}
