// SPDX-License-Identifier: GPL-2.0-only
/* Containers that are watched. */
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "event.h"
#include "file.h"
#include "holding.h"
#include "node.h"
#include "watch.h"

struct hlist_head gs_watch_hash[__GS_KEY_COUNT][1 << GS_WATCH_BITS];
unsigned int gs_watch_count[__GS_KEY_COUNT];
LIST_HEAD(gs_watches);
unsigned int gs_n_watches;

static u32 last_id;

struct gs_watch *gs_watch_find(const char *name)
{
	struct gs_watch *watch;

	list_for_each_entry(watch, &gs_watches, link)
		if (strcmp(watch->name, name) == 0)
			return watch;
	return NULL;
}

static void watch_free(struct kref *ref)
{
	struct gs_watch *watch = container_of(ref, struct gs_watch, ref);

	free_percpu(watch->counts);
	put_pid(watch->init);
	if (watch->ns)
		put_pid_ns(watch->ns);
	kfree(watch);
}

void gs_watch_put(struct gs_watch *watch)
{
	kref_put(&watch->ref, watch_free);
}

void gs_watch_refresh(struct gs_watch *watch)
{
	unsigned int redirect = 0;
	struct gs_link *link;

	if (gs_going && watch->role == GS_MEMBER) {
		/* Nobody is held any more, and whoever was goes on without us. */
	} else if (watch->role == GS_BORROWER) {
		redirect = watch->revoked ? GS_ALL_CALLS : GS_KIND_BIT(GS_OPEN);
	} else if (watch->role == GS_MEMBER) {
		list_for_each_entry(link, &watch->links, of_watch) {
			switch (link->holding->state) {
			case GS_ACTIVE:
				redirect |= link->holding->checking ? GS_ALL_CALLS : 0;
				break;
			case GS_UNKNOWN:
			case GS_QUARANTINE:
				break;
			default:
				redirect |= GS_ALL_CALLS;
			}
		}
	}
	WRITE_ONCE(watch->redirect, redirect);
}

u64 gs_watch_node_sum(const struct gs_watch *watch, unsigned int index)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(watch->counts, cpu)->touches[index]);
	return sum;
}

u64 gs_watch_sum(const struct gs_watch *watch)
{
	unsigned int i, n = gs_node_indices();
	u64 sum = 0;

	for (i = 0; i < n; i++)
		sum += gs_watch_node_sum(watch, i);
	return sum;
}

bool gs_watch_last(const struct gs_watch *watch, unsigned long *last)
{
	bool any = false;
	int cpu;

	for_each_possible_cpu(cpu) {
		unsigned long t = READ_ONCE(per_cpu_ptr(watch->counts, cpu)->last);

		if (!t || (any && !time_after(t, *last)))
			continue;
		*last = t;
		any = true;
	}
	return any;
}

/*
 * The PID namespace of a process, if it is still the one that was meant: numbers are used again,
 * the start time tells.
 */
static int find_namespace(struct gs_watch *watch, u32 nr, u64 start_time,
			  struct netlink_ext_ack *extack)
{
	struct pid_namespace *ns;
	struct task_struct *task;
	struct pid *pid;
	int ret = 0;

	pid = find_get_pid(nr);
	task = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	put_pid(pid);
	if (!task) {
		gs_refuse(extack, "no such process");
		return -ESRCH;
	}
	rcu_read_lock();
	/* As fs/proc shows it; USER_HZ divides a second. */
	if (div_u64(task->start_boottime, NSEC_PER_SEC / USER_HZ) != start_time) {
		gs_refuse(extack, "the process has another start time: it is not the one meant");
		ret = -ESRCH;
	} else {
		ns = task_active_pid_ns(task);
		if (!ns) {
			gs_refuse(extack, "the process is gone");
			ret = -ESRCH;
		} else if (ns == &init_pid_ns) {
			gs_refuse(extack,
				  "the process is in the host's PID namespace: name its cgroup");
			ret = -EINVAL;
		} else {
			watch->ns = get_pid_ns(ns);
			watch->init = get_pid(find_pid_ns(1, ns));
			watch->key = (unsigned long)ns;
			watch->pid = nr;
		}
	}
	rcu_read_unlock();
	put_task_struct(task);
	if (!ret && !watch->init) {
		gs_refuse(extack, "the first process of the PID namespace is gone");
		ret = -ESRCH;
	}
	return ret;
}

/* Undoes link_holdings() for the links that are in @links. */
static void free_links(struct list_head *links)
{
	struct gs_link *link, *next;

	list_for_each_entry_safe(link, next, links, of_watch) {
		list_del(&link->of_watch);
		gs_holding_put(link->holding);
		kfree(link);
	}
}

static struct gs_link *find_link(struct gs_watch *watch, struct gs_holding *holding)
{
	struct gs_link *link;

	list_for_each_entry(link, &watch->links, of_watch)
		if (link->holding == holding)
			return link;
	return NULL;
}

/* Makes links to those of @spec's holdings that @watch has none to, not yet visible. */
static int make_links(struct gs_watch *watch, const struct gs_watch_spec *spec,
		      struct list_head *links, unsigned int *n)
{
	struct gs_link *link;
	unsigned int i;

	for (i = 0; i < spec->n_holdings; i++) {
		if (find_link(watch, spec->holdings[i]))
			continue;
		list_for_each_entry(link, links, of_watch)
			if (link->holding == spec->holdings[i])
				break;
		if (!list_entry_is_head(link, links, of_watch))
			continue;
		link = kzalloc(sizeof(*link), GFP_KERNEL);
		if (!link)
			return -ENOMEM;
		link->watch = watch;
		link->holding = spec->holdings[i];
		kref_get(&link->holding->ref);
		list_add_tail(&link->of_watch, links);
		(*n)++;
	}
	return 0;
}

/* A borrower may come only while every lender is LENT, and that must hold to the end. */
static int check_lenders(struct list_head *links, struct netlink_ext_ack *extack)
{
	struct gs_link *link;

	list_for_each_entry(link, links, of_watch) {
		if (link->holding->state != GS_LENT) {
			gs_refuse(extack, "a lender is not lent (any more)");
			return -EBUSY;
		}
	}
	return 0;
}

/* Makes the links visible. gs_lock held. */
static void join(struct gs_watch *watch, struct list_head *links)
{
	struct gs_link *link;

	/*
	 * What it touched before it joined is not the holding's. Touches that come while we read
	 * the sum are, in doubt, counted: that only delays a lend.
	 */
	list_for_each_entry(link, links, of_watch) {
		list_add_tail(&link->of_holding, &link->holding->links);
		if (watch->role == GS_MEMBER)
			link->holding->gone -= gs_watch_sum(watch);
	}
	list_splice_tail_init(links, &watch->links);
	gs_watch_refresh(watch);
}

static int watch_update(struct gs_watch *watch, const struct gs_watch *asked,
			const struct gs_watch_spec *spec, struct netlink_ext_ack *extack)
{
	LIST_HEAD(links);
	unsigned int n = 0;
	int ret;

	if (watch->key != asked->key || watch->by != asked->by || watch->role != spec->role) {
		gs_refuse(extack,
			  "a watch of that name has another role or container: delete it first");
		return -EEXIST;
	}
	ret = make_links(watch, spec, &links, &n);
	if (!ret && n && watch->role == GS_BORROWER) {
		gs_refuse(extack, "a borrower can't get more lenders");
		ret = -EEXIST;
	}
	if (!ret && watch->role == GS_BORROWER && READ_ONCE(watch->revoked)) {
		gs_refuse(extack, "the borrower was revoked, for good: delete it first");
		ret = -EBUSY;
	}
	if (!ret && watch->n_links + n > GS_LINKS_MAX) {
		gs_refuse(extack, "too many holdings for one watch");
		ret = -E2BIG;
	}
	if (!ret) {
		spin_lock(&gs_lock);
		join(watch, &links);
		watch->n_links += n;
		watch->kill_on_return = spec->kill_on_return;
		spin_unlock(&gs_lock);
	}
	free_links(&links);
	return ret;
}

bool gs_watch_has(const struct gs_watch *watch, struct task_struct *task)
{
	const struct pid *pid = task_pid(task);
	struct css_set *css;
	struct cgroup *cgrp;

	if (watch->by == GS_KEY_PIDNS)
		return pid && pid->level >= watch->ns->level &&
		       pid->numbers[watch->ns->level].ns == watch->ns;
	css = rcu_dereference_raw(task->cgroups);
	cgrp = css->dfl_cgrp;
#if GS_CGROUP_V1
	if (watch->by == GS_KEY_CGROUP_V1)
		cgrp = rcu_dereference_raw(css->subsys[devices_cgrp_id])->cgroup;
#endif
	for (; cgrp; cgrp = cgroup_parent(cgrp))
		if (cgroup_id(cgrp) == watch->key)
			return true;
	return false;
}

/* Is namespace @inner in @outer, or the same? */
static bool ns_in(struct pid_namespace *inner, const struct pid_namespace *outer)
{
	for (; inner; inner = inner->parent)
		if (inner == outer)
			return true;
	return false;
}

static bool overlap(const struct gs_watch *a, const struct gs_watch *b)
{
	return a->by == GS_KEY_PIDNS && b->by == GS_KEY_PIDNS &&
	       (ns_in(a->ns, b->ns) || ns_in(b->ns, a->ns));
}

static void visit_role(struct gs_watch *watch, void *arg)
{
	*(unsigned int *)arg |= 1u << watch->role;
}

/*
 * Does somebody belong to the watch, and to another one whose role does not go with its own? A
 * namespace and a cgroup can't be compared, but those who are there now can be asked. (Whoever
 * comes later, or is moved: the borrower counts.)
 */
static bool is_both(const struct gs_watch *watch)
{
	struct task_struct *process, *thread;
	unsigned int roles = 0;

	if (watch->role == GS_EXEMPT)
		return false;
	/* Two namespaces are compared without asking anybody. */
	if (watch->by == GS_KEY_PIDNS && !gs_watch_count[GS_KEY_CGROUP] &&
	    !gs_watch_count[GS_KEY_CGROUP_V1])
		return false;
	rcu_read_lock();
	for_each_process_thread(process, thread)
		if (!thread->exit_state && gs_watch_has(watch, thread))
			gs_walk_task(thread, visit_role, &roles);
	rcu_read_unlock();
	return roles & (1u << (watch->role == GS_MEMBER ? GS_BORROWER : GS_MEMBER));
}

/*
 * Does the watch lie in another, or another in it? -EEXIST where the one is a member and the other
 * a borrower: nobody is both.
 */
static int find_nested(struct gs_watch *watch, struct netlink_ext_ack *extack)
{
	struct gs_watch *other;

	list_for_each_entry(other, &gs_watches, link) {
		if (!overlap(watch, other))
			continue;
		watch->nested = true;
		if (watch->role + other->role == GS_MEMBER + GS_BORROWER &&
		    watch->role != other->role) {
			gs_refuse(extack, "a member and a borrower, one inside the other");
			return -EEXIST;
		}
		/* A file is counted for one borrower, and only for that one's lenders. */
		if (watch->role == GS_BORROWER && other->role == GS_BORROWER) {
			gs_refuse(extack, "a borrower inside another one: name all its lenders");
			return -EEXIST;
		}
	}
	if (is_both(watch)) {
		gs_refuse(extack, "a process would be a member's and a borrower's");
		return -EEXIST;
	}
	return 0;
}

/* See gs_special. */
static unsigned long specialty(const struct gs_watch *watch)
{
	return (watch->role == GS_EXEMPT || watch->nested ? GS_SPECIAL : 0) +
	       (watch->by != GS_KEY_PIDNS);
}

static int watch_add(struct gs_watch *watch, const struct gs_watch_spec *spec,
		     struct netlink_ext_ack *extack)
{
	struct gs_watch *other;
	LIST_HEAD(links);
	int ret;

	list_for_each_entry(other, &gs_watches, link) {
		if (other->by == watch->by && other->key == watch->key) {
			gs_refuse(extack, "another watch covers that container already");
			return -EEXIST;
		}
	}
	if (gs_n_watches >= GS_WATCHES_MAX) {
		gs_refuse(extack, "too many watches");
		return -E2BIG;
	}
	watch->counts = alloc_percpu(struct gs_counts);
	if (!watch->counts)
		return -ENOMEM;
	ret = make_links(watch, spec, &links, &watch->n_links);
	if (ret)
		goto out;

	ret = find_nested(watch, extack);
	if (ret)
		goto out;
	spin_lock(&gs_lock);
	WRITE_ONCE(gs_special, gs_special + specialty(watch));
	spin_unlock(&gs_lock);
	/*
	 * A callback that takes the short way stops at the first watch that it finds. None may
	 * still be on it when this one can be found inside another.
	 */
	if (watch->nested)
		synchronize_rcu();

	spin_lock(&gs_lock);
	if (watch->role == GS_BORROWER)
		ret = check_lenders(&links, extack);
	if (!ret) {
		kref_get(&watch->ref);
		watch->id = ++last_id;
		join(watch, &links);
		list_add_tail(&watch->link, &gs_watches);
		gs_config_generation++;
		WRITE_ONCE(gs_watch_count[watch->by], gs_watch_count[watch->by] + 1);
		hlist_add_head_rcu(&watch->hash, gs_watch_bucket(watch->by, watch->key));
		gs_n_watches++;
	} else {
		WRITE_ONCE(gs_special, gs_special - specialty(watch));
	}
	spin_unlock(&gs_lock);
out:
	free_links(&links);
	return ret;
}

int gs_watch_set(const struct gs_watch_spec *spec, struct netlink_ext_ack *extack)
{
	struct gs_watch *watch, *old;
	int ret = 0;

	watch = kzalloc(sizeof(*watch), GFP_KERNEL);
	if (!watch)
		return -ENOMEM;
	kref_init(&watch->ref);
	INIT_LIST_HEAD(&watch->links);
	strscpy(watch->name, spec->name, sizeof(watch->name));
	watch->role = spec->role;
	watch->by = spec->by;
	watch->kill_on_return = spec->kill_on_return;

	if (spec->by == GS_KEY_PIDNS)
		ret = find_namespace(watch, spec->pid, spec->start_time, extack);
	else
		watch->key = spec->key;
	if (!ret) {
		old = gs_watch_find(spec->name);
		ret = old ? watch_update(old, watch, spec, extack) : watch_add(watch, spec, extack);
	}
	gs_watch_put(watch);
	return ret;
}

/* No call finds the watch any more. Those that have found it are waited for by the caller. */
static void hide_watch(struct gs_watch *watch)
{
	spin_lock(&gs_lock);
	hlist_del_rcu(&watch->hash);
	WRITE_ONCE(gs_watch_count[watch->by], gs_watch_count[watch->by] - 1);
	list_del(&watch->link);
	gs_config_generation++;
	gs_n_watches--;
	watch->kill = false;
	spin_unlock(&gs_lock);
}

/* The rest, after synchronize_rcu(): its count is final. */
static void forget_watch(struct gs_watch *watch)
{
	struct gs_link *link;
	LIST_HEAD(links);

	spin_lock(&gs_lock);
	/*
	 * Not before: a callback that still finds this watch inside another one must not take the
	 * short way, which stops at the first.
	 */
	WRITE_ONCE(gs_special, gs_special - specialty(watch));
	list_for_each_entry(link, &watch->links, of_watch) {
		if (watch->role == GS_MEMBER)
			link->holding->gone += gs_watch_sum(watch);
		list_del(&link->of_holding);
	}
	/* Whoever kills has a reference, and may go through them as soon as we give up the lock. */
	list_splice_init(&watch->links, &links);
	spin_unlock(&gs_lock);
	free_links(&links);
	gs_watch_put(watch);
}

int gs_watch_del(struct gs_watch *watch, struct netlink_ext_ack *extack)
{
	unsigned int files;

	spin_lock(&gs_lock);
	files = watch->files;
	/* From here on it can't open any: an open is refused or done. */
	if (!files && watch->role == GS_BORROWER) {
		watch->revoked = true;
		gs_watch_refresh(watch);
	}
	spin_unlock(&gs_lock);
	/* With no hook left (ftrace has died) closes are not seen: it would stay for ever. */
	if (files && list_empty(&gs_nodes)) {
		gs_file_forget(watch, 0);
		files = 0;
	}
	if (files) {
		gs_refuse(extack, "the borrower has open files: wait for DRAINED");
		return -EBUSY;
	}
	hide_watch(watch);
	synchronize_rcu();
	forget_watch(watch);
	return 0;
}

void gs_watch_exit(void)
{
	struct gs_watch *watch, *next;
	LIST_HEAD(hidden);

	list_for_each_entry_safe(watch, next, &gs_watches, link) {
		hide_watch(watch);
		list_add(&watch->link, &hidden);
	}
	synchronize_rcu();
	list_for_each_entry_safe(watch, next, &hidden, link)
		forget_watch(watch);
}
