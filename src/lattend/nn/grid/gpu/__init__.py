"""The recurrence over a grid in one Triton kernel; needs Triton."""
