"""The contract of a federated method, as tests of any method, your own too; without pytest.

    from lgfed_core.testing import check_method, promises

    check_method(MyMethod())  # all at once: raises ContractError, a line a broken promise

    @pytest.mark.parametrize("promise", promises(MyMethod()), ids=str)
    def test_my_method(promise):
        promise()  # one test a promise

They train a small network on four devices with made-up rows, a few rounds each: seconds in all.

===================  ===========================================================================
promise              what it says
===================  ===========================================================================
``trains``           a round on the network works
``padding``          rows of weight 0 do not count
``lanes``            devices one by one, or all at once, learn the same
``plain_sgd``        one device with all rows is plain SGD; of methods with plain cross-entropy
``resumes``          a stopped run goes on to the same bits
``frozen``           parameters without a gradient stay as they are
``nothing``          no rounds, or a learning rate of 0, change nothing
``leaves``           what is shared leaves a device, and nothing else
``weights``          weights sum to one and go with their devices
``equal_uploads``    where all devices send the same, that is the average
``server``           the server goes by what arrives, and by nothing else
``own_rows``         a device learns from no other device's rows within a round
``renaming``         devices in another order learn the same
``labels``           rows without a label are refused by name, or count as such
``groups``           groups that are missing are refused by name, or not needed
``few_rows``         a device with one row works, and one with none moves nothing
``not_finite``       a device that sends NaN is named, and never averaged
===================  ===========================================================================
"""

from .contract import Checked as Checked, check_method as check_method, promises as promises
from .network import Everything as Everything, everything as everything
from .promise import NotTested as NotTested, Promise as Promise
