// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Whose requests are those of a control group: of the processes in it or below it, and what the kernel does later for what they wrote, as far
// as it charges that to the group. It does where the group has the io controller of version 2; elsewhere only what a process asks for
// itself is known to be its own.

// Groups below each other, at most.
#define LEVELS 64

// Whether a group is the one of the settings, or below it.
static __always_inline int in_group(struct cgroup_subsys_state *css)
{
	// Of 64 bits: an early Linux 5.15 forgets a smaller number that is kept on the stack, and takes the loop for an endless one.
	for (__u64 level = 0; level < LEVELS && css; level++) {
		if (css->cgroup->kn->id == settings.group)
			return 1;
		css = css->parent;
	}
	return 0;
}

// The group that the kernel charges a request to, if it says so.
static __always_inline struct cgroup_subsys_state *charged_to(struct bio *bio)
{
	return bio && bpf_core_field_exists(bio->bi_blkg) ? &bio->bi_blkg->blkcg->css : 0;
}

static __always_inline int of_group(struct bio *bio)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;
	struct cgroup_subsys_state *css;

	if (!(task->flags & PF_KTHREAD) && in_group(&cgroup->self))
		return 1;
	css = charged_to(bio);
	// Numbers of groups in a hierarchy of version 1 mean others.
	return css && css->cgroup->root == cgroup->root && in_group(css);
}
