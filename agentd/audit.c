/* SPDX-License-Identifier: MIT */
#include "agentd/audit.h"

#include <stdio.h>
#include <string.h>

#include "agentd/access.h"
#include "base/log.h"

static const char *const verdicts[IPC_VERDICT_COUNT] = {
	[IPC_VERDICT_OK] = "allowed",
	[IPC_VERDICT_NO_PROCESS] = "no such process",
	[IPC_VERDICT_KERNEL_THREAD] = "kernel thread",
	[IPC_VERDICT_OTHER_USER] = "refused: not the owner",
	[IPC_VERDICT_NOT_DUMPABLE] = "refused: not dumpable",
	[IPC_VERDICT_USER_NAMESPACE] = "refused: other user namespace",
	[IPC_VERDICT_PID_NAMESPACE] = "refused: other pid namespace",
	[IPC_VERDICT_CAPABILITIES] = "refused: more capabilities than the client",
	[IPC_VERDICT_OTHER_GROUP] = "refused: other groups",
	[IPC_VERDICT_KERNEL] = "refused: the kernel would",
	[IPC_VERDICT_UNKNOWN_PEER] = "refused: the client is not known",
	[IPC_VERDICT_OWN_PROCESS] = "refused: the agent itself",
	[IPC_VERDICT_LIMIT] = "refused: limit",
	[IPC_VERDICT_RESCUE] = "refused: being rescued",
	[IPC_VERDICT_FAILED] = "failed",
};

/* Room for any number of 32 bits. */
struct number {
	char text[12];
};

static struct number number_of(long long value)
{
	struct number n;

	snprintf(n.text, sizeof(n.text), "%lld", value);
	return n;
}

static struct number user_of(uid_t uid)
{
	return number_of(uid == ACCESS_NOBODY ? -1 : (long long)uid);
}

void audit_attach(const struct audit_client *client, uint32_t pid, enum ipc_verdict verdict, bool joined)
{
	const struct number target = number_of(pid), uid = number_of(client->uid), peer = number_of(client->pid);
	const struct log_field fields[] = { { "OBJECT_PID", target.text },
					    { "GPU_AGENT_PEER_UID", uid.text },
					    { "GPU_AGENT_PEER_PID", peer.text },
					    { "GPU_AGENT_VERDICT", verdicts[verdict] },
					    { NULL, NULL } };

	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_ATTACH, fields, "attach to %s asked by uid %s (pid %s): %s%s", target.text,
		   uid.text, peer.text, verdicts[verdict], joined ? ", joins the open session" : "");
}

void audit_refusals(uid_t uid, uint32_t n, const char *kinds, uint32_t seconds)
{
	const struct number user = user_of(uid), count = number_of(n);
	const struct log_field fields[] = { { "GPU_AGENT_PEER_UID", user.text },
					    { "GPU_AGENT_COUNT", count.text },
					    { NULL, NULL } };

	log_record(LOG_LEVEL_WARNING, LOG_MESSAGE_REFUSED, fields, "uid %s: %s more attaches refused in %u s", user.text,
		   count.text, seconds);
}

static void audit_use(const char *id, const struct audit_client *client, const struct audit_use *use,
		      const char *owner)
{
	const struct number target = number_of(use->pid), uid = user_of(client ? client->uid : ACCESS_NOBODY),
			    peer = number_of(client ? client->pid : 0), count = number_of(use->n);
	char session[16], more[40] = "";
	const struct log_field fields[] = { { "OBJECT_PID", target.text },
					    { "GPU_AGENT_PEER_UID", uid.text },
					    { "GPU_AGENT_PEER_PID", peer.text },
					    { "GPU_AGENT_METHOD", use->method },
					    { "GPU_AGENT_SESSION", session },
					    { "GPU_AGENT_COUNT", count.text },
					    { "GPU_AGENT_UID", owner },
					    { NULL, NULL } };

	snprintf(session, sizeof(session), "s%u", use->session);
	if (use->n > 1)
		snprintf(more, sizeof(more), ", and %u calls before", use->n - 1);
	log_record(LOG_LEVEL_INFO, id, fields, "%s on process %s%s%s by uid %s (pid %s)%s", use->method, target.text,
		   owner ? " of uid " : "", owner ? owner : "", uid.text, peer.text, more);
}

void audit_control(const struct audit_client *client, const struct audit_use *use)
{
	audit_use(LOG_MESSAGE_CONTROL, client, use, NULL);
}

void audit_read(const struct audit_client *client, const struct audit_use *use)
{
	audit_use(LOG_MESSAGE_READ, client, use, user_of(use->uid).text);
}

static const char *reason_of(enum ipc_use why)
{
	return why == IPC_USE_TAKEN_FORCED ? "forced" : why == IPC_USE_TAKEN_SILENT ? "silent" : "left";
}

void audit_taken(const struct audit_client *client, const struct audit_client *from, const struct audit_use *use,
		 enum ipc_use why, uint64_t idle_ms)
{
	const struct number target = number_of(use->pid), uid = user_of(client->uid), peer = number_of(client->pid),
			    from_uid = user_of(from->uid), from_pid = number_of(from->pid);
	char session[16], idle[24];
	const struct log_field fields[] = { { "OBJECT_PID", target.text },
					    { "GPU_AGENT_PEER_UID", uid.text },
					    { "GPU_AGENT_PEER_PID", peer.text },
					    { "GPU_AGENT_FROM_UID", from_uid.text },
					    { "GPU_AGENT_FROM_PID", from_pid.text },
					    { "GPU_AGENT_REASON", reason_of(why) },
					    { "GPU_AGENT_IDLE_MS", idle },
					    { "GPU_AGENT_METHOD", use->method },
					    { "GPU_AGENT_SESSION", session },
					    { NULL, NULL } };

	snprintf(session, sizeof(session), "s%u", use->session);
	snprintf(idle, sizeof(idle), "%llu", (unsigned long long)idle_ms);
	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_TAKEN, fields,
		   "control of process %s taken from uid %s (pid %s) by uid %s (pid %s): %s", target.text, from_uid.text,
		   from_pid.text, uid.text, peer.text, reason_of(why));
}

void audit_record_use(const struct audit_client *client, const char *method, const char *record, uid_t uid, uint32_t n)
{
	const struct number owner = user_of(uid), user = user_of(client->uid), peer = number_of(client->pid),
			    count = number_of(n);
	const struct log_field fields[] = { { "GPU_AGENT_PEER_UID", user.text },
					    { "GPU_AGENT_PEER_PID", peer.text },
					    { "GPU_AGENT_METHOD", method },
					    { "GPU_AGENT_RECORD", record[0] ? record : "several" },
					    { "GPU_AGENT_UID", owner.text },
					    { "GPU_AGENT_COUNT", count.text },
					    { NULL, NULL } };

	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_RECORD_USED, fields, "%s on record%s%s of uid %s by uid %s (pid %s)", method,
		   record[0] ? " " : "s", record, owner.text, user.text, peer.text);
}

static void audit_uses(uid_t uid, uint32_t n, const char *methods, uint32_t seconds, const char *whose)
{
	const struct number user = user_of(uid), count = number_of(n);
	const struct log_field fields[] = { { "GPU_AGENT_PEER_UID", user.text },
					    { "GPU_AGENT_COUNT", count.text },
					    { "GPU_AGENT_WHOSE", whose },
					    { "GPU_AGENT_METHODS", methods },
					    { NULL, NULL } };

	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_USES, fields, "uid %s: %s more calls on %s processes in %u s: %s", user.text,
		   count.text, strcmp(whose, "own") ? "other users'" : "its own", seconds, methods);
}

void audit_own_uses(uid_t uid, uint32_t n, const char *methods, uint32_t seconds)
{
	audit_uses(uid, n, methods, seconds, "own");
}

void audit_other_uses(uid_t uid, uint32_t n, const char *methods, uint32_t seconds)
{
	audit_uses(uid, n, methods, seconds, "others");
}

void audit_lie(const char *what, uint64_t client)
{
	char id[24];
	const struct log_field fields[] = { { "GPU_AGENT_CLIENT", id }, { "GPU_AGENT_REASON", what }, { NULL, NULL } };

	snprintf(id, sizeof(id), "%llu", (unsigned long long)client);
	log_record(LOG_LEVEL_ERROR, LOG_MESSAGE_FALLEN, fields, "front speaks for a client that it has not (%s): %s", what,
		   id);
}
