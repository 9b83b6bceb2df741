/** Completes keys and values in a definition from the server's JSON Schema. */
import type { Completion, CompletionSource } from '@codemirror/autocomplete'
import { isRecord } from './object-paths.ts'

type JsonSchema = Readonly<Record<string, unknown>>

/** The path segment that stands for every item of a list. */
const item = Symbol('item')
type Step = string | typeof item

/**
 * Returns a completion source for keys and values; `models` are the ids that it offers for the key `model`.
 */
export function completeDefinition(
  schema: JsonSchema | undefined,
  models: readonly string[],
): CompletionSource {
  return ({ state, pos, explicit }) => {
    if (schema === undefined) return null
    const line = state.doc.lineAt(pos)
    const before = line.text.slice(0, pos - line.from)
    const above = state.doc.sliceString(0, line.from).split('\n').slice(0, -1)
    const value = /^(\s*(?:- +)*)([\w-]+):\s+(\S*)$/.exec(before)
    if (value !== null) {
      const [, lead = '', key = '', typed = ''] = value
      const path = [...pathOf(above, lead), key]
      const ids = path.length === 1 && key === 'model' ? models : listValues(schemasAt(schema, path))
      return toResult(
        pos - typed.length,
        ids.map((label) => ({ label })),
      )
    }
    const name = /^(\s*(?:- +)*)([\w-]*)$/.exec(before)
    if (name === null) return null
    const [, lead = '', typed = ''] = name
    if (typed === '' && !explicit) return null
    return toResult(pos - typed.length, listKeys(schemasAt(schema, pathOf(above, lead))))
  }
}

function toResult(from: number, options: readonly Completion[]) {
  return options.length === 0 ? null : { from, options, validFor: /^[\w./:-]*$/ }
}

/**
 * Returns the path of the mapping that contains a key; `lead` is the indentation and dashes before that key.
 */
export function pathOf(above: readonly string[], lead: string): Step[] {
  const path: Step[] = []
  let column = lead.length
  let dash = lead.indexOf('-')
  if (dash !== -1) {
    path.unshift(item)
    column = dash
  }
  for (const line of above.toReversed()) {
    const match = /^(\s*)((?:- +)*)([\w-]+)\s*:/.exec(line)
    if (match === null) continue
    const [, space = '', dashes = '', key = ''] = match
    const keyColumn = space.length + dashes.length
    const isParent = keyColumn < column || (dash !== -1 && dashes === '' && keyColumn === column)
    const isBeginOfItem = dashes !== '' && keyColumn === column && dash === -1
    if (!isParent && !isBeginOfItem) continue
    if (isParent) path.unshift(key)
    column = keyColumn
    dash = -1
    if (dashes === '') continue
    path.unshift(item)
    column = space.length
    dash = space.length
  }
  return path
}

/** Returns every schema that may apply to a value at `path`. */
function schemasAt(schema: unknown, path: readonly Step[]): JsonSchema[] {
  const branches = branchesOf(schema)
  const [step, ...rest] = path
  if (step === undefined) return branches
  return branches.flatMap((branch) => {
    const inner = step === item ? branch.items : propertiesOf(branch)[step]
    return inner === undefined ? [] : schemasAt(inner, rest)
  })
}

function branchesOf(schema: unknown): JsonSchema[] {
  if (!isRecord(schema)) return []
  const inner = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) =>
    Array.isArray(list) ? list : [],
  )
  return [schema, ...inner.flatMap(branchesOf)]
}

function propertiesOf(schema: JsonSchema): Record<string, unknown> {
  return isRecord(schema.properties) ? schema.properties : {}
}

function listKeys(schemas: readonly JsonSchema[]): Completion[] {
  return schemas.flatMap((schema) =>
    Object.entries(propertiesOf(schema)).map(([label, inner]) => ({
      label,
      apply: `${label}: `,
      detail: describe(inner),
      type: 'property',
    })),
  )
}

function listValues(schemas: readonly JsonSchema[]): string[] {
  return schemas.flatMap((schema) => [
    ...(schema.const === undefined ? [] : [String(schema.const)]),
    ...(Array.isArray(schema.enum) ? schema.enum.map(String) : []),
    ...(schema.type === 'boolean' ? ['true', 'false'] : []),
  ])
}

const words: Readonly<Record<string, string>> = { string: 'text', array: 'list', object: 'mapping' }

function describe(schema: unknown): string {
  const types = branchesOf(schema).flatMap(({ type, const: only }) =>
    only === undefined ? (typeof type === 'string' ? [words[type] ?? type] : []) : [String(only)],
  )
  return [...new Set(types)].join(' or ')
}
