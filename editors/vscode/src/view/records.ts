// SPDX-License-Identifier: MIT
// The view of stored records: what the agent keeps of exceptions and of snapshots.
import * as vscode from "vscode";
import { defaultSocket, GpuRecord } from "../client";
import { failure } from "../processes";
import { records } from "../records";
import { socketSetting } from "../settings";
import { spelled } from "../spelled";
import { FAULT, Node, row } from "./node";
import { View } from "./view";

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

function sizeOf(bytes: number): string {
	const at = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
	const n = bytes / 1024 ** at;
	return `${n < 10 && at ? n.toFixed(1) : Math.round(n)} ${UNITS[at]}`;
}

/** What it is about, as an exception or as what was asked for. */
function kindOf(r: GpuRecord): string {
	if (r.broken)
		return "broken record";
	const what = r.exception?.replaceAll("_", " ").replaceAll(",", ", ") ?? (r.reason === "requested" ? "snapshot" : r.reason ?? "record");
	return r.count > 1 ? `${what}, ${r.count} times` : what;
}

function timeOf(r: GpuRecord): string {
	const time = new Date(r.time_us / 1000);
	const today = time.toDateString() === new Date().toDateString();
	return time.toLocaleString(undefined, { dateStyle: today ? undefined : "short", timeStyle: "medium" });
}

function coreOf(r: GpuRecord): string {
	return { none: "no core file", present: `core file of ${sizeOf(r.body_bytes)}`, gone: "core file removed by the limits" }[r.body];
}

export class RecordNode implements Node {
	readonly id: string;

	constructor(readonly record: GpuRecord) {
		this.id = record.record;
	}

	item(): vscode.TreeItem {
		const r = this.record;
		const item = row(this.id, kindOf(r), [
			`${r.pid}${r.comm ? ` ${spelled(r.comm)}` : ""}`, timeOf(r), sizeOf(r.disk_bytes), ...(r.pinned ? ["pinned"] : []),
		].join(", "), false);
		item.iconPath = r.pinned ? new vscode.ThemeIcon("pinned") : r.exception ? FAULT : new vscode.ThemeIcon("archive");
		item.tooltip = [
			`Record ${r.record}`, kindOf(r), ...(r.kernel ? [[r.kernel, r.location].filter((t) => t).join(", ")] : []),
			`Process ${r.pid} ${spelled(r.comm ?? "")}`, ...(r.rule ? [`Kept by the rule ${r.rule}`] : []), coreOf(r),
			...(r.pinned ? ["Pinned: it stays, whatever the limits say"] : []), ...(r.broken ? [r.broken] : []),
		].join("\n");
		item.contextValue = `record${r.body === "present" ? " core" : ""}${r.pinned ? " pinned" : " free"}`;
		// Arguments of a command are lost when the row is drawn anew meanwhile: it takes the row that is selected.
		item.command = { command: "gpu-agent.showRecord", title: "Show" };
		return item;
	}

	children(): Node[] {
		return [];
	}
}

class Roots implements Node {
	readonly id = "records";
	list: GpuRecord[] = [];

	item(): vscode.TreeItem {
		return row(this.id, "Stored Records", "", true);
	}

	children(): Node[] {
		return this.list.map((r) => new RecordNode(r));
	}
}

export class Records extends View {
	private readonly roots: Roots;

	constructor() {
		const roots = new Roots();
		super("gpu-agent.records", roots);
		this.roots = roots;
		this.watch();
	}

	protected async ask(): Promise<void> {
		const socket = socketSetting() ?? defaultSocket();
		try {
			this.roots.list = await records(socket);
			this.view.message = this.roots.list.length ? undefined : "The agent has stored no record that you may see.";
		} catch (error) {
			this.roots.list = [];
			this.view.message = failure(socket, error);
		}
	}
}
