/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_JOB_KUBERNETES_H
#define CTL_VERBS_JOB_KUBERNETES_H

/**
 * @file kubernetes.h
 * Processes of a job's pods.  kubectl says where they run, and which pod of the agent runs on the same node; that one
 * is asked by `kubectl exec`, which hands on its exit status.
 */

#include <stdint.h>

struct job;

/**
 * Add a task for each node of the pods.
 * @param what       NAMESPACE/SELECTOR
 * @param agents     Namespace of the agent's pods; NULL: gpu-agent.
 * @param context    Of kubectl; NULL: its own.
 */
int kubernetes_add_nodes(struct job *j, const char *what, const char *agents, const char *context);
/** What is run for a node, in the time that is left; NULL when memory is exhausted. */
const char *const *kubernetes_argv(struct job *j, const char *node);
/** On the node: add the processes of these pods.  @param uids  Joined by commas. */
int kubernetes_add_own(struct job *j, const char *uids);

#endif /* CTL_VERBS_JOB_KUBERNETES_H */
