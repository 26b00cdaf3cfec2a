// SPDX-License-Identifier: MIT
// Requests that only our adapter takes, and what it answers.
import type { Device, Group, Queue, Wave } from "./client";

/** How a request names a wave. */
export type WaveName = Wave["ref"];

export interface Thread {
	threadId: number;
	name: string;
	/** A fault has stopped its waves, whether the queues run or not. */
	faulting: boolean;
	group: Group;
}

export interface Groups {
	groups: Thread[];
	devices: Device[];
	queues: Queue[];
	/** Groups, with those that are not listed. */
	total: number;
	waves: number;
	/** The queues stand still, or nothing runs in a core file. */
	paused: boolean;
}

export interface Waves {
	waves: Wave[];
	total: number;
}

export interface Lane {
	lane: number;
	active: boolean;
	shown: boolean;
	pc: string;
	/** Of the wave, where its lanes are at different places. */
	part?: number;
	workItem?: number[];
	global?: number[];
	exception?: string;
	/** Of the columns, in their order. */
	values?: string[];
}

export interface Lanes {
	threadId: number;
	wave: string;
	exec: string;
	/** The one whose variables are shown. */
	lane?: number;
	lanes: Lane[];
	/** Expressions that were asked for, and their types. */
	columns?: { expression: string; type?: string }[];
	/** Variables that there was no room for. */
	more?: number;
}

/** What an editor is to show; a wave, a lane of it, or the thread as it is. */
export interface Focus {
	threadId: number;
	wave?: WaveName;
	lane?: number;
}

/** Whether nobody has asked: what a view looks at by itself keeps no queue suspended. */
interface Automatic {
	automatic?: boolean;
}

interface Requests {
	"gpuAgent/groups": [Automatic, Groups];
	"gpuAgent/waves": [Automatic & { threadId: number; start: number; count: number }, Waves];
	"gpuAgent/lanes": [Automatic & {
		threadId?: number; frameId?: number; wave?: WaveName; lane?: number; columns?: string[]; variables?: boolean;
	}, Lanes];
	"gpuAgent/focus": [Focus & { reveal: boolean }, { revealed: boolean }];
	"gpuAgent/takeControl": [undefined, { control: boolean }];
	pause: [{ threadId: number }, undefined];
	continue: [{ threadId: number }, undefined];
}

/** Where requests go: a session of the editor's. */
export interface Asked {
	customRequest(command: string, args?: unknown): Thenable<unknown>;
}

export async function request<C extends keyof Requests>(
	session: Asked, command: C, args: Requests[C][0],
): Promise<Requests[C][1]> {
	return await session.customRequest(command, args) as Requests[C][1];
}
