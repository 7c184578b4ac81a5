// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Other background work of idlewise on this disk: a scrub, or a command that is run in the gaps. Its requests are nobody's foreground, who
// would earn what others then pay with their slowdown.

// Written by user space: numbers of control groups, and of processes with the highest bit set.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, __u8);
} works SEC(".maps");

#define IS_PROCESS (1ULL << 63)

static __always_inline int is_work(__u64 number)
{
	return bpf_map_lookup_elem(&works, &number) != 0;
}

// Whether a group is that of a work, or below one.
static __always_inline int in_work(struct cgroup_subsys_state *css)
{
	// Of 64 bits: an early Linux 5.15 forgets a smaller number that is kept on the stack, and takes the loop for an endless one.
	for (__u64 level = 0; level < LEVELS && css; level++) {
		if (is_work(css->cgroup->kn->id))
			return 1;
		css = css->parent;
	}
	return 0;
}

static __always_inline int of_work(struct bio *bio)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;
	struct cgroup_subsys_state *css;

	if (!(task->flags & PF_KTHREAD) &&
	    (is_work(bpf_get_current_pid_tgid() >> 32 | IS_PROCESS) ||
	     // A process that it makes calls by (apart/calls.rs).
	     is_work((__u32)task->real_parent->tgid | IS_PROCESS) || in_work(&cgroup->self)))
		return 1;
	css = charged_to(bio);
	return css && css->cgroup->root == cgroup->root && in_work(css);
}

// Whose a request is: one of `enum whose`.
static __always_inline __u8 whose(const struct open_request *open, __u32 flags, struct bio *bio)
{
	if (settings.group ? of_group(bio) : ours(open, flags))
		return OWN;
	if (!shared.works || !of_work(bio))
		return FOREGROUND;
	// What is behind it is to be told of one by one.
	shared.tell_each = 1;
	return ANOTHER;
}
