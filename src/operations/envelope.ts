/** The envelope of inputs and answers of the typed API: the one that superjson gives to plain JSON. See docs/adr/0001. */

export const outputTransformer = {
  serialize: (value: unknown) => ({ json: value }),
  deserialize: ({ json }: { readonly json?: unknown }) => json,
}

/** The transformer of our own clients; JSON cannot say `undefined`, and a call without an input is one without fields. */
export const clientTransformer = {
  input: { ...outputTransformer, serialize: (input: unknown) => ({ json: input ?? {} }) },
  output: outputTransformer,
}
