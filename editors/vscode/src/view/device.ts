// SPDX-License-Identifier: MIT
// What a session knows: devices, their queues, the groups of waves on these.
import * as vscode from "vscode";
import type { Device, Queue } from "../client";
import { count } from "../processes";
import type { Groups, Thread } from "../requests";
import type { Session } from "../sessions";
import { FAULT, goes, Node, Place, Remark, row } from "./node";
import { WaveRange } from "./wave";

class GroupNode implements Node {
	readonly id: string;

	constructor(parent: string, private readonly session: Session, private readonly thread: Thread, private readonly still: boolean) {
		this.id = `${parent}/thread ${thread.threadId}`;
	}

	item(): vscode.TreeItem {
		const { name, faulting, group } = this.thread;
		const runs = !this.still && !faulting;
		const queues = (group.queues?.length ?? 0) > 1 ? [`queues ${group.queues?.join(", ")}`] : [];
		// The device is the row above.
		const item = row(this.id, name.replace(/^GPU \d+: /, ""),
			[runs ? "running" : group.state, ...queues].join(", "), !runs);
		item.iconPath = faulting ? FAULT : new vscode.ThemeIcon(runs ? "sync" : "debug-pause");
		return goes(item);
	}

	get place(): Place {
		return { session: this.session, focus: { threadId: this.thread.threadId } };
	}

	children(automatic: boolean): Promise<Node[]> {
		const { threadId, group } = this.thread;
		return new WaveRange(this.id, this.session, threadId, 0, group.waves).children(automatic);
	}
}

class QueueNode implements Node {
	constructor(readonly id: string, private readonly queue: Queue, private readonly groups: GroupNode[]) {}

	item(): vscode.TreeItem {
		const { queue_id: number, type, read_index: done, write_index: all, waves, faulting_waves: faulting, suspended } = this.queue;
		const facts = [
			type.replace("_", " "),
			...(done === undefined || all === undefined ? [] : [`${done} of ${all} packets taken`]),
			...(waves === undefined ? [] : [count(waves, "wave")]),
			...(faulting ? [`${faulting} faulted`] : []),
			...(suspended ? ["suspended"] : []),
			...this.queue.exceptions,
		];
		const item = row(this.id, `queue ${number}`, facts.join(", "), this.groups.length > 0);
		item.iconPath = faulting || this.queue.exceptions.length ? FAULT : new vscode.ThemeIcon("list-ordered");
		if (this.groups.length)
			item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
		return item;
	}

	children(): Node[] {
		return this.groups;
	}
}

class DeviceNode implements Node {
	readonly id: string;

	constructor(parent: string, private readonly session: Session, private readonly at: number, private readonly device: Device,
		private readonly all: Groups) {
		this.id = `${parent}/${device.gpu_id}`;
	}

	item(): vscode.TreeItem {
		const { name, arch, exceptions } = this.device;
		const mine = this.threads();
		const waves = mine.reduce((n, t) => n + t.group.waves, 0);
		const item = row(this.id, `GPU ${this.at} ${name}`,
			[arch, `${count(waves, "wave")} in ${count(mine.length, "group")}`, ...exceptions].join(", "), true);
		item.iconPath = mine.some((t) => t.faulting) || exceptions.length ? FAULT : new vscode.ThemeIcon("circuit-board");
		item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
		return item;
	}

	/** A group of waves of one queue is below that; one of several stands beside them. */
	children(): Node[] {
		const mine = this.threads();
		const node = (id: string) => (t: Thread) => new GroupNode(id, this.session, t, this.all.paused);
		const queues = this.all.queues.filter((q) => q.gpu_id === this.device.gpu_id).map((q) => {
			const id = `${this.id}/queue ${q.queue_id}`;
			return new QueueNode(id, q, mine.filter((t) => isOnlyOf(t, q)).map(node(id)));
		});
		return [...mine.filter((t) => t.group.queues?.length !== 1).map(node(this.id)), ...queues];
	}

	private threads(): Thread[] {
		return this.all.groups.filter((t) => t.group.gpu_id === this.device.gpu_id);
	}
}

function isOnlyOf(t: Thread, q: Queue): boolean {
	return t.group.queues?.length === 1 && t.group.queues[0] === q.queue_id;
}

/** The devices that a session knows, those without anything on them left out where others have something. */
export async function devicesOf(parent: string, session: Session): Promise<Node[]> {
	const all = await session.groups();
	const busy = (d: Device): boolean => d.exceptions.length > 0 || all.groups.some((t) => t.group.gpu_id === d.gpu_id) ||
		all.queues.some((q) => q.gpu_id === d.gpu_id);
	const nodes: Node[] = all.devices.map((d, i) => ({ d, node: new DeviceNode(parent, session, i, d, all) }))
		.filter(({ d }) => busy(d)).map(({ node }) => node);
	const left = all.total - all.groups.length;
	return left > 0 ? [...nodes, new Remark(`${parent}/more`, `${count(left, "more group")}: raise maxThreads to see them`)] : nodes;
}
