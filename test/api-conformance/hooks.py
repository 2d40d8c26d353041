"""What an OpenAPI document cannot say about the forms that schemathesis makes."""

import schemathesis


@schemathesis.hook
def filter_body(context, body):
    if not isinstance(body, dict):
        return True
    # A form holds text only: null, a list or an object would become text, which may be valid.
    if not all(isinstance(value, (str, bool)) for value in body.values()):
        return False
    # Names that differ in case only are the same header.
    return len({name.lower() for name in body}) == len(body)
