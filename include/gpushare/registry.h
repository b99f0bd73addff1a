/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: the node's record of the containers that hold or receive vendor devices.
 *
 *   run_dir/containers/<id>.json        what the runtime knew at create
 *   run_dir/containers/<id>.hook.json   what gpushare-hook saw of the running container
 *   run_dir/containers/<id>.next        symbolic link; its text is the next runtime's path and, if
 *                                       that was called with --root, a newline and the root
 *   run_dir/by-name/<hash>/<id>         empty; hash: FNV-1a 64 of "<namespace>/<pod>/<container>"
 *   run_dir/deleted/<id>                empty; `delete` was called, sweep when it is gone
 *   /run/gpushare/next/<name>-<hash>    symbolic link, there whatever run_dir is; its text is the
 *                                       next runtime's path, a newline and the run_dir that the
 *                                       config led to when it was last good. name: what the program
 *                                       was called by; hash: FNV-1a 64 of the config's path
 *
 * All 0600 in 0700 directories, written under a temporary name and renamed. Each writer has a
 * file of its own, so that none loses another's.
 *
 * <id>.json: {"v":1,"id","bundle","pid_file","identity":{"namespace","pod","container"},
 * "sandbox_id","pod_uid","annotations":{ours only},"role":"holder"|"target"|"borrower",
 * "next","root","cgroups_path","boot_id","start_ticks":N,"deadline_ms":N,"grant",
 * "sources":[ID,...],
 * "shared_pid":bool,"spec":{the vendor slice, in the shape of config.json}}
 *
 * start_ticks: clock ticks since boot when the record was made (field 22 of /proc/PID/stat).
 * deadline_ms: CLOCK_BOOTTIME until which creation may be delayed, for the hook.
 * Members that do not apply are absent.
 *
 * <id>.hook.json: {"v":1,"id","pid":N,"start_ticks":N,"pid_ns":INODE,"cgroup":PATH}
 */
#ifndef GPUSHARE_REGISTRY_H
#define GPUSHARE_REGISTRY_H

#define GS_REGISTRY_VERSION 1
#define GS_REGISTRY_CONTAINERS "containers"
#define GS_REGISTRY_BY_NAME "by-name"
#define GS_REGISTRY_DELETED "deleted"

#endif
