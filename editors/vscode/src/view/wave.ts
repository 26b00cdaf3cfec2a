// SPDX-License-Identifier: MIT
// Waves of a group, a page at a time, and the lanes of a wave.
import * as vscode from "vscode";
import type { Wave } from "../client";
import { factsOf } from "../lanes/choose";
import type { Lane } from "../requests";
import type { Session } from "../sessions";
import { FAULT, goes, Node, Place, row } from "./node";

/** Rows below one row. */
const PAGE = 128;

export class LaneNode implements Node {
	readonly id: string;

	constructor(parent: string, private readonly session: Session, private readonly threadId: number,
		private readonly wave: Wave, private readonly lane: Lane) {
		this.id = `${parent}/${lane.lane}`;
	}

	item(): vscode.TreeItem {
		const { lane, active, exception, shown } = this.lane;
		const item = row(this.id, `lane ${lane}`, [exception, factsOf(this.lane)].filter((t) => t).join(", "), false);
		item.iconPath = exception ? FAULT : new vscode.ThemeIcon(shown ? "arrow-right" : active ? "circle-filled" : "circle-outline");
		return goes(item);
	}

	get place(): Place {
		return { session: this.session, focus: { threadId: this.threadId, wave: this.wave.ref, lane: this.lane.lane } };
	}

	children(): Node[] {
		return [];
	}
}

export class WaveNode implements Node {
	readonly id: string;

	constructor(parent: string, private readonly session: Session, private readonly threadId: number, private readonly wave: Wave) {
		const { queue_id: queue, unit, index } = wave.ref;
		this.id = `${parent}/${queue}:${unit}:${index}`;
	}

	item(): vscode.TreeItem {
		const { ref, lanes, width, state, reasons, exception } = this.wave;
		const where = ref.workgroup.length ? [`workgroup (${ref.workgroup.join(", ")})`] : [];
		const why = exception ?? reasons.join(", ");
		const item = row(this.id, `wave ${ref.queue_id}:${ref.unit}:${ref.index}`,
			[...where, `${lanes} of ${width} lanes active`, why || state].join(", "), true);
		item.iconPath = why ? FAULT : new vscode.ThemeIcon("pulse");
		item.contextValue = "wave";
		return goes(item);
	}

	get place(): Place {
		return { session: this.session, focus: { threadId: this.threadId, wave: this.wave.ref } };
	}

	async children(automatic: boolean): Promise<Node[]> {
		const { lanes } = await this.session.lanesOf(this.threadId, this.wave.ref, automatic);
		return lanes.map((lane) => new LaneNode(this.id, this.session, this.threadId, this.wave, lane));
	}
}

/** A part of the waves of a group that is opened as a whole. */
export class WaveRange implements Node {
	readonly id: string;

	constructor(private readonly parent: string, private readonly session: Session, private readonly threadId: number,
		private readonly start: number, private readonly end: number) {
		this.id = `${parent}/${start}-${end}`;
	}

	item(): vscode.TreeItem {
		return row(this.id, `waves ${this.start}–${this.end - 1}`, "", true);
	}

	/** Waves, or ranges of them where they are more than a page. */
	async children(automatic: boolean): Promise<Node[]> {
		const n = this.end - this.start;
		if (n <= PAGE) {
			const { waves } = await this.session.wavesOf(this.threadId, this.start, n, automatic);
			return waves.map((wave) => new WaveNode(this.parent, this.session, this.threadId, wave));
		}
		let size = PAGE;
		while (n > size * PAGE)
			size *= PAGE;
		const starts = Array.from({ length: Math.ceil(n / size) }, (_, i) => this.start + i * size);
		return starts.map((s) => new WaveRange(this.parent, this.session, this.threadId, s, Math.min(s + size, this.end)));
	}
}
