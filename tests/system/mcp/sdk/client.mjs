// SPDX-License-Identifier: MIT
// Drives a server with a client of the protocol's authors, and prints what it got as JSON.  Arguments: which client, then the command.
const [which, command, ...args] = process.argv.slice(2);
const info = { name: 'gpu-agent-test', version: '1' };

async function connect() {
	if (which === 'sdk') {
		const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
		const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
		const client = new Client(info, { capabilities: {} });
		await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
		return client;
	}
	const { Client } = await import('@modelcontextprotocol/client');
	const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
	const mode = which === 'pin' ? { pin: '2026-07-28' } : which;
	const client = new Client(info, { capabilities: {}, versionNegotiation: { mode } });
	await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
	return client;
}

const client = await connect();
const pid = Number(process.env.TARGET);
const found = { tools: (await client.listTools()).tools };
const progress = [];
found.list = await client.callTool({ name: 'list', arguments: {} });
found.snapshot = await client.callTool({ name: 'snapshot', arguments: { pid, max_stop_ms: 7000 } });
found.wrong = await client.callTool({ name: 'doctor', arguments: { pid: 'x' } });
found.resources = (await client.listResources()).resources;
found.document = await client.readResource({ uri: found.resources.at(-1).uri });
const slow = { name: 'diff', arguments: { pid, again_ms: 3000, max_stop_ms: 7000 } };
const options = { onprogress: (p) => progress.push(p) };
found.diff = await (which === 'sdk' ? client.callTool(slow, undefined, options) : client.callTool(slow, options));
found.progress = progress.length;
const control = new AbortController();
setTimeout(() => control.abort('enough'), 500);
const cancelled = { signal: control.signal };
try {
	await (which === 'sdk' ? client.callTool(slow, undefined, cancelled) : client.callTool(slow, cancelled));
	found.cancelled = false;
} catch {
	found.cancelled = true;
}
found.again = await client.callTool({ name: 'list', arguments: {} });
console.log(JSON.stringify(found));
await client.close();
