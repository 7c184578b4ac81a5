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

// What makes a write one that somebody waits for.
#define WAITED_FOR (REQ_SYNC | REQ_FUA | REQ_PREFLUSH)
// So long after a work's last one of these the kernel may be at what follows from it.
#define SYNC_FOLLOWS 1000000000ULL

static __always_inline int is_waited_for(__u32 op, __u32 flags)
{
	return op == REQ_OP_FLUSH || (op == REQ_OP_WRITE && flags & WAITED_FOR);
}

// Whether it is charged to a group that is not the root.
static __always_inline int is_charged(struct bio *bio)
{
	struct cgroup_subsys_state *css = charged_to(bio);

	return css && css->parent;
}

// Takes note of who has a write done at once, such as for an fsync. A thread of the kernel does it for someone who has been seen before.
static __always_inline void note_sync(struct bio *bio)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u32 flags = bio->bi_opf, op = flags & REQ_OP_MASK;

	if (!(settings.group || shared.works) || !is_waited_for(op, flags) || (task->flags & PF_KTHREAD && !is_charged(bio)))
		return;
	shared.synced_by = settings.group && of_group(bio) ? OWN : shared.works && of_work(bio) ? ANOTHER : FOREGROUND;
	shared.synced_at = bpf_ktime_get_ns();
}

// Whose is what the kernel writes at once and says for nobody: flushes of the disk's cache, and a file system's journal. It is of who had
// something written at once last.
static __always_inline __u8 of_sync(const struct open_request *open, __u32 flags, struct bio *bio)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	if (!is_waited_for(open->op, flags) || is_charged(bio) || (open->op != REQ_OP_FLUSH && !(task->flags & PF_KTHREAD)) ||
	    bpf_ktime_get_ns() - shared.synced_at > SYNC_FOLLOWS)
		return FOREGROUND;
	return shared.synced_by;
}

// Whose a request is: one of `enum whose`.
static __always_inline __u8 whose(const struct open_request *open, __u32 flags, struct bio *bio)
{
	__u8 whose = FOREGROUND;

	if (settings.group ? of_group(bio) && open->op != REQ_OP_FLUSH : ours(open, flags))
		return OWN;
	if (shared.works && of_work(bio) && open->op != REQ_OP_FLUSH)
		whose = ANOTHER;
	else if (settings.group || shared.works)
		whose = of_sync(open, flags, bio);
	// What is behind it is to be told of one by one.
	if (whose == ANOTHER)
		shared.tell_each = 1;
	return whose;
}
