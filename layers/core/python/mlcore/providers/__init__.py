"""Language models at their providers: what a call of one looks like on the wire, and the way there.

Whatever a provider speaks, a chat goes in and comes out as OpenAI's API has it. Nothing here reads
or writes the table, and no error repeats a credential.
"""
