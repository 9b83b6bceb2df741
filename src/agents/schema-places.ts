/** Walks the subschemas of a JSON Schema, to judge what no meta-schema can: where references lead, what patterns say. */
import { isRecord } from './fields.ts'
import type { Path } from './refusal.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** What is wrong with a schema, and where in it. */
export interface SchemaFault {
  readonly path: Path
  readonly problem: string
}

/** A schema or subschema, and the resource it is in: the nearest schema around it that has an `$id`. */
interface Place {
  readonly node: JsonSchema
  readonly path: Path
  readonly resource: JsonSchema
}

const referenceKeywords = ['$ref', '$dynamicRef', '$recursiveRef']
const anchorKeywords = ['$anchor', '$dynamicAnchor']

/** Keywords whose value is data, which may look like a schema. */
const dataKeywords = new Set(['const', 'enum', 'default', 'examples', 'example'])

/** Keywords whose value has names for keys, which may look like keywords. */
const namingKeywords = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
])

/** Finds a reference that leaves the schema or leads to nothing in it. Security: 2.5 (no remote `$ref`). */
export function findReferenceFault(schema: JsonSchema): SchemaFault | undefined {
  const places = listPlaces(schema)
  const anchors = new Set(places.flatMap(({ node }) => anchorsOf(node)))
  for (const { node, path, resource } of places) {
    for (const keyword of referenceKeywords) {
      const target = node[keyword]
      if (typeof target !== 'string') continue
      const isFound = target.startsWith('#') && (anchors.has(target.slice(1)) || isSchemaAt(resource, target))
      if (!isFound)
        return { path: [...path, keyword], problem: 'must lead to a schema inside this one, as #/… does' }
    }
  }
  return undefined
}

/** Finds a pattern that is no regular expression. Patterns are read, never run. Security: 2.6. */
export function findPatternFault(schema: JsonSchema): SchemaFault | undefined {
  for (const { node, path } of listPlaces(schema)) {
    if (typeof node.pattern === 'string' && !isPattern(node.pattern)) {
      return { path: [...path, 'pattern'], problem: 'must be a regular expression' }
    }
    const names = isRecord(node.patternProperties) ? Object.keys(node.patternProperties) : []
    const wrong = names.find((name) => !isPattern(name))
    if (wrong !== undefined) {
      return {
        path: [...path, 'patternProperties', wrong],
        problem: 'must have a regular expression as its key',
      }
    }
  }
  return undefined
}

/**
 * A copy that says nothing of patterns, and so lets through what only they would refuse: for judging values by a schema that nobody
 * vouches for. Security: 2.6.
 */
export function withoutPatterns(schema: JsonSchema): JsonSchema {
  const copy = structuredClone(schema)
  for (const place of listPlaces(copy)) {
    const node: Record<string, unknown> = place.node
    delete node.pattern
    if (node.patternProperties === undefined) continue
    // What these speak of is what no pattern took.
    for (const keyword of ['patternProperties', 'additionalProperties', 'unevaluatedProperties'])
      delete node[keyword]
  }
  return copy
}

function isPattern(source: string): boolean {
  return toRegExp(source) !== undefined
}

/** A pattern as a regular expression, in the stricter dialect if it is one there; undefined when it is none. */
export function toRegExp(source: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(source, flags)
    } catch {}
  }
  return undefined
}

function listPlaces(schema: JsonSchema): Place[] {
  const places: Place[] = []
  const enter = (value: unknown, path: Path, resource: JsonSchema, hasNames: boolean): void => {
    if (Array.isArray(value)) {
      for (const [index, child] of value.entries()) enter(child, [...path, index], resource, false)
    }
    if (!isRecord(value)) return
    const inner = typeof value.$id === 'string' && !isAnchorId(value.$id) ? value : resource
    if (!hasNames) places.push({ node: value, path, resource: inner })
    for (const [key, child] of Object.entries(value)) {
      if (!hasNames && dataKeywords.has(key)) continue
      enter(child, [...path, key], inner, !hasNames && namingKeywords.has(key))
    }
  }
  enter(schema, [], schema, false)
  return places
}

function anchorsOf(node: JsonSchema): unknown[] {
  const anchors = anchorKeywords.map((keyword) => node[keyword])
  return isAnchorId(node.$id) ? [...anchors, node.$id.slice(1)] : anchors
}

/** Draft-07 writes an anchor as an `$id` that is only a fragment. */
function isAnchorId(id: unknown): id is string {
  return typeof id === 'string' && id.startsWith('#')
}

/** Whether a reference `#/a/b` leads to a schema, which is an object or a boolean. */
function isSchemaAt(resource: JsonSchema, reference: string): boolean {
  const [root, ...segments] = decodeFragment(reference).split('/')
  if (root !== '') return false
  let value: unknown = resource
  for (const segment of segments.map(unescapePointer)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return false
    value = Reflect.get(value, segment)
  }
  return isRecord(value) || typeof value === 'boolean'
}

function decodeFragment(reference: string): string {
  try {
    return decodeURIComponent(reference.slice(1))
  } catch {
    return reference.slice(1)
  }
}

/** A segment of a JSON Pointer as it is meant. */
export function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}
