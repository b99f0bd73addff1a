// SPDX-License-Identifier: Apache-2.0
/* The pods of this node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/pods.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"
#include "gpushare/resources.h"

/* The kubelet runs at most a few hundred pods on a node; who waits beyond that is left to it. */
#define POD_MAX 4096

struct pod {
	char *uid, *ns, *name; /* the names may be NULL until it is known */
	bool known; /* the API has told it */
	bool over; /* it has ended by itself */
	bool deleting; /* somebody deletes it, with a grace */
	bool unless_over; /* not to be deleted then */
	const char *reason; /* of the Event, where it is deleted */
	bool job; /* it lives on over-sold CPU or memory: */
	bool plain_cpu, plain_memory; /* and on other, too; */
	uint64_t vcpu, vmem; /* so much of it, in thousandths and MiB */
	int64_t priority;
	char *created;
	bool init_share, init_spot; /* as of struct kube_pod */
	bool missed; /* a complete list did not have it */
	char *why; /* to be deleted as soon as it is known; NULL: not */
	bool asked; /* that was done */
};

struct pods {
	struct pod *v;
	size_t n;
	bool complete; /* the API has told all there are, once at least */
};

static struct pod *find(struct pods *pods, const char *uid)
{
	for (size_t i = 0; i < pods->n; i++)
		if (strcmp(pods->v[i].uid, uid) == 0)
			return &pods->v[i];
	return NULL;
}

/* @ns and @name: NULL, where they are not known */
static struct pod *add(struct pods *pods, const char *ns, const char *name, const char *uid)
{
	struct pod *pod = find(pods, uid);

	if (!pod && pods->n >= POD_MAX)
		return NULL;
	if (!pod) {
		pods->v = gs_grow(pods->v, pods->n, sizeof(*pods->v));
		pod = &pods->v[pods->n++];
		*pod = (struct pod){ .uid = gs_strdup(uid) };
	}
	if (!pod->name && name) {
		pod->ns = gs_strdup(ns);
		pod->name = gs_strdup(name);
	}
	return pod;
}

static void drop(struct pods *pods, struct pod *pod)
{
	free(pod->uid);
	free(pod->ns);
	free(pod->name);
	free(pod->created);
	free(pod->why);
	*pod = pods->v[--pods->n];
}

/* ---- Deleting. */

/* One that is on its way. */
struct deletion {
	struct agent *agent;
	char *label, *uid, *why;
};

/* One that was refused is tried again when the pod changes, as it does while it can't start. */
static void try_later(struct deletion *deletion)
{
	struct pod *pod = find(deletion->agent->pods, deletion->uid);

	if (!pod)
		return;
	pod->asked = false;
	if (!pod->why)
		pod->why = gs_steal(deletion->why);
}

static void on_deleted(int result, const struct gs_err *err, void *arg)
{
	struct deletion *deletion = arg;

	if (result == 0) {
		gs_log_fields(GS_LOG_INFO, "a pod is deleted", "pod", deletion->label, NULL);
	} else {
		gs_log_fields(GS_LOG_ERROR, "a pod is not deleted", "pod", deletion->label, "why",
			      err->msg, NULL);
		try_later(deletion);
	}
	free(deletion->label);
	free(deletion->uid);
	free(deletion->why);
	free(deletion);
}

static void delete_now(struct agent *agent, struct pod *pod)
{
	cleanup_free char *why = gs_steal(pod->why);
	struct deletion *deletion;

	if (pod->over && pod->unless_over)
		return;
	pod->asked = true;
	kube_event(agent->kube, pod->ns, pod->name, pod->uid, "Normal", pod->reason, why);
	deletion = gs_calloc(1, sizeof(*deletion));
	deletion->agent = agent;
	deletion->label = gs_asprintf("%s/%s", pod->ns, pod->name);
	deletion->uid = gs_strdup(pod->uid);
	deletion->why = gs_steal(why);
	kube_delete_pod(agent->kube, pod->ns, pod->name, pod->uid, on_deleted, deletion);
}

static void delete_pod(struct agent *agent, struct pod *pod, const char *reason, const char *why,
		       bool unless_over)
{
	/* several of its containers may have borrowed */
	if (!pod || pod->asked)
		return;
	if (!pod->why) {
		pod->why = gs_strdup(why);
		pod->reason = reason;
		pod->unless_over = unless_over;
	}
	if (pod->known)
		delete_now(agent, pod);
}

void pods_delete(struct agent *agent, const struct gs_record *rec, const char *why)
{
	if (agent->kube && rec->pod_uid && gs_identity_is_set(&rec->identity))
		delete_pod(agent,
			   add(agent->pods, rec->identity.ns, rec->identity.pod, rec->pod_uid),
			   "GpuReclaimed", why, false);
}

void pods_delete_uid(struct agent *agent, const char *uid, const char *why)
{
	if (agent->kube)
		delete_pod(agent, add(agent->pods, NULL, NULL, uid), "GpuReclaimed", why, true);
}

void pods_delete_named(struct agent *agent, const char *ns, const char *name, const char *why)
{
	for (size_t i = 0; agent->kube && i < agent->pods->n; i++) {
		struct pod *pod = &agent->pods->v[i];

		if (pod->known && strcmp(pod->ns, ns) == 0 && strcmp(pod->name, name) == 0)
			delete_pod(agent, pod, "GpuReclaimed", why, true);
	}
}

void pods_evict(struct agent *agent, const char *uid, const char *why)
{
	delete_pod(agent, find(agent->pods, uid), "OversaleReclaimed", why, true);
}

/* ---- What the API tells. */

/* By what it bought; what the webhook wrote on it for its containers is the same, or lacks. */
static bool is_job(const struct kube_pod *told)
{
	if (told->vcpu || told->vmem)
		return true;
	for (size_t i = 0; i < told->n_annotations; i++)
		if (strncmp(told->annotations[i].key, GS_KEY_VCPU, strlen(GS_KEY_VCPU)) == 0 ||
		    strncmp(told->annotations[i].key, GS_KEY_VMEM, strlen(GS_KEY_VMEM)) == 0)
			return true;
	return false;
}

static void on_pod(const struct kube_pod *told, bool gone, void *arg)
{
	struct agent *agent = arg;
	struct pod *pod = gone ? find(agent->pods, told->uid) :
				 add(agent->pods, told->namespace, told->name, told->uid);

	if (!pod)
		return;
	if (gone) {
		drop(agent->pods, pod);
		return;
	}
	pod->known = true;
	pod->over = kube_pod_over(told);
	pod->deleting = told->deleting;
	pod->job = is_job(told);
	pod->plain_cpu = told->plain_cpu;
	pod->plain_memory = told->plain_memory;
	pod->vcpu = told->vcpu;
	pod->vmem = told->vmem;
	pod->init_share = told->init_share;
	pod->init_spot = told->init_spot;
	pod->priority = told->priority;
	/* a job's alone: there may be thousands of others */
	free(gs_steal(pod->created));
	pod->created = pod->job && told->created ? gs_strdup(told->created) : NULL;
	if (pod->why)
		delete_now(agent, pod);
}

bool pods_untold(const struct agent *agent, const char *resource)
{
	bool share = strcmp(resource, GS_RESOURCE_SHARE) == 0;

	if (agent->kube && !agent->pods->complete)
		return true;
	for (size_t i = 0; agent->pods && i < agent->pods->n; i++) {
		const struct pod *pod = &agent->pods->v[i];

		if (!pod->over && (share ? pod->init_share : pod->init_spot))
			return true;
	}
	return false;
}

size_t pods_jobs(const struct agent *agent, struct oversale_job **ret)
{
	size_t n = 0;

	*ret = NULL;
	for (size_t i = 0; agent->pods && i < agent->pods->n; i++) {
		const struct pod *pod = &agent->pods->v[i];

		if (!pod->job || pod->over)
			continue;
		*ret = gs_grow(*ret, n, sizeof(**ret));
		(*ret)[n++] = (struct oversale_job){
			.uid = pod->uid,
			.cpu = pod->vcpu,
			.memory = pod->vmem,
			.priority = pod->priority,
			.since = pod->created ? pod->created : "",
			.going = pod->why || pod->asked || pod->deleting,
			.only_cpu = !pod->plain_cpu,
			.only_memory = !pod->plain_memory,
		};
	}
	return n;
}

/*
 * A complete list: what it did not have was gone before we asked, or is younger than the server's
 * cache that the list came out of, and is in the next one.
 */
static void on_synced(void *arg)
{
	struct agent *agent = arg;

	agent->pods->complete = true;
	for (size_t i = agent->pods->n; i-- > 0;)
		if (!agent->pods->v[i].known && agent->pods->v[i].missed)
			drop(agent->pods, &agent->pods->v[i]);
		else
			agent->pods->v[i].missed = !agent->pods->v[i].known;
}

static void on_health(bool ok, const char *why, void *arg)
{
	struct agent *agent = arg;

	agent->kube_ok = ok;
	kube_log_health(ok, why);
}

int pods_start(struct agent *agent, struct gs_err *err)
{
	const struct kube_ops ops = {
		.pod = on_pod,
		.synced = on_synced,
		.health = on_health,
		.note = kube_log_note,
		.arg = agent,
	};
	int r;

	agent->pods = gs_calloc(1, sizeof(*agent->pods));
	if (!agent->settings.kube.server && !getenv("KUBERNETES_SERVICE_HOST"))
		return 0;
	r = kube_config_in_cluster(&agent->settings.kube, err);
	if (r == 0 && !agent->settings.kube.node)
		r = gs_err_set(err, EINVAL, "no node's name is set, and NODE_NAME tells none");
	if (r == 0)
		r = kube_new(agent->loop, &agent->settings.kube, &ops, &agent->kube, err);
	if (r == 0)
		kube_watch_pods(agent->kube);
	return r;
}

void pods_stop(struct agent *agent)
{
	kube_free(agent->kube);
	agent->kube = NULL;
	while (agent->pods && agent->pods->n)
		drop(agent->pods, &agent->pods->v[0]);
	if (agent->pods)
		free(agent->pods->v);
	free(agent->pods);
	agent->pods = NULL;
}
