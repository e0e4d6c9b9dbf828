"""Kernels: attention over the marked squares and no others, with gradients."""

from lattend.kernels import counted as counted  # tells torch's counter what attention costs
from lattend.kernels.attention import attention as attention
from lattend.kernels.bias import Bias as Bias
from lattend.kernels.cache import Cache as Cache
from lattend.kernels.call import Call as Call
from lattend.kernels.documents import document_ids as document_ids
