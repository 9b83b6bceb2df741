/** Finds the operation a method and a path stand for. */
import { ServiceError } from '../lib/errors.ts'
import type { Http, NamedOperation, Operation } from './operation.ts'

/** An operation that has a place in the REST door. */
export type RestOperation<D = never> = Operation<D> & {
  readonly http: Http
  /** As the table of operations calls it, at whatever place. */
  readonly name: string
  /** Its name in the document; the same operation at two places has two. */
  readonly id: string
}

/** Every operation that has a place in the REST door, once for each. */
export function listRestOperations<D>(named: readonly NamedOperation<D>[]): RestOperation<D>[] {
  const operations = named.flatMap(({ name, operation }) =>
    operation.http === undefined
      ? []
      : [{ ...operation, http: operation.http, name, id: name.replaceAll('.', '-') }],
  )
  return [...operations, ...operations.filter(isForOwners).map(toManagerOperation)]
}

/** What a parent key may do with agents and files, a user may do in the console; forms only come with a key. Decision: 10. */
function isForOwners({ http, wire }: RestOperation): boolean {
  const isTheirs = /^\/v1\/(agents|files)(\/|$)/.test(http.path) && wire.callers.includes('parent')
  return isTheirs && wire.body !== 'upload'
}

function toManagerOperation<D>(operation: RestOperation<D>): RestOperation<D> {
  const { path, method } = operation.http
  const http: Http = {
    ...operation.http,
    path: `/v1/manager${path.slice('/v1'.length)}` as const,
    tag: 'Manager',
    description: `The same as \`${method} ${path}\`, also for users of the console.`,
  }
  return { ...operation, http, id: `manager-${operation.id}` }
}

/** An operation found, with its path parameters decoded. */
export interface Match<D = never> {
  readonly operation: RestOperation<D>
  readonly params: Readonly<Record<string, string>>
}

interface Pattern<D> {
  readonly segments: readonly string[]
  readonly takesRest: boolean
  readonly byMethod: Map<string, RestOperation<D>>
}

export interface RouteTable<D> {
  /**
   * The operation behind a request; HEAD is answered by GET's.
   * @throws ServiceError `not_found`, `method_not_allowed` (with the methods that are), `invalid_value` (bad percent-encoding).
   */
  match(method: string, path: string): Match<D>
}

/** The table of all operations: fixed paths in a map, patterns in a short list, more fixed segments first. */
export function createRouteTable<D>(operations: readonly RestOperation<D>[]): RouteTable<D> {
  const fixed = new Map<string, Map<string, RestOperation<D>>>()
  const patterns = new Map<string, Pattern<D>>()
  for (const operation of operations) {
    const { path, method } = operation.http
    if (!path.includes('{')) {
      const byMethod = fixed.get(path) ?? new Map()
      fixed.set(path, byMethod.set(method, operation))
      continue
    }
    const takesRest = operation.wire.takesRest === true
    const pattern = patterns.get(path) ?? { segments: path.split('/'), takesRest, byMethod: new Map() }
    pattern.byMethod.set(method, operation)
    patterns.set(path, pattern)
  }
  const ordered = [...patterns.values()].sort((a, b) => countParams(a) - countParams(b))

  return {
    match(method, path) {
      const byMethod = fixed.get(path)
      if (byMethod !== undefined) return { operation: choose(byMethod, method), params: {} }
      const segments = path.split('/')
      for (const pattern of ordered) {
        const values = matchSegments(pattern, segments)
        if (values === undefined) continue
        return { operation: choose(pattern.byMethod, method), params: decodeParams(values) }
      }
      throw new ServiceError('not_found', `There is nothing at ${path}.`)
    },
  }
}

function countParams(pattern: Pattern<never>): number {
  return pattern.segments.filter(isParam).length
}

function isParam(segment: string): boolean {
  return segment.startsWith('{')
}

/** The raw values by name, or undefined when the path is another one. */
function matchSegments(pattern: Pattern<never>, segments: readonly string[]): [string, string][] | undefined {
  const { segments: expected, takesRest } = pattern
  if (takesRest ? segments.length < expected.length : segments.length !== expected.length) return undefined
  const values: [string, string][] = []
  for (const [index, segment] of expected.entries()) {
    const isLast = index === expected.length - 1
    const value = takesRest && isLast ? segments.slice(index).join('/') : (segments[index] as string)
    if (!isParam(segment)) {
      if (segment !== value) return undefined
    } else if (value === '') return undefined
    else values.push([segment.slice(1, -1), value])
  }
  return values
}

function decodeParams(values: readonly [string, string][]): Record<string, string> {
  try {
    return Object.fromEntries(values.map(([name, value]) => [name, decodeURIComponent(value)]))
  } catch {
    throw new ServiceError('invalid_value', 'The path is not validly percent-encoded.')
  }
}

function choose<D>(byMethod: Map<string, RestOperation<D>>, method: string): RestOperation<D> {
  const operation = byMethod.get(method === 'HEAD' ? 'GET' : method)
  if (operation !== undefined) return operation
  const allow = [...byMethod.keys()]
  if (byMethod.has('GET')) allow.push('HEAD')
  throw new ServiceError('method_not_allowed', `${method} is not possible here, only ${allow.join(', ')}.`, {
    allow: [...allow, 'OPTIONS'],
  })
}
