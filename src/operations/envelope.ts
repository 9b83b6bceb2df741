/** Wraps tRPC inputs and results in the envelope that superjson uses for plain JSON (ADR 0001). */

export const outputTransformer = {
  serialize: (value: unknown) => ({ json: value }),
  deserialize: ({ json }: { readonly json?: unknown }) => json,
}

/** The transformer for Parley's clients; encodes a missing input as null, because JSON has no `undefined`. */
export const clientTransformer = {
  input: { ...outputTransformer, serialize: (input: unknown) => ({ json: input ?? {} }) },
  output: outputTransformer,
}
