/** The REST routes: which operation a method and a path stand for. */
import { ServiceError } from '../lib/errors.ts'
import type { Http, NamedOperation, Operation, OperationDocs } from './operation.ts'

export type RestOperation<D = never> = Operation<D> & {
  readonly http: Http
  readonly docs: OperationDocs
  /** Its name in the list of operations, also at a second path. */
  readonly name: string
  /** Its name in the OpenAPI document; an operation at two paths has two. */
  readonly id: string
}

export function listRestOperations<D>(named: readonly NamedOperation<D>[]): RestOperation<D>[] {
  const operations = named.flatMap(({ name, operation }) => {
    const { http, docs } = operation
    if (http === undefined) return []
    if (docs === undefined) throw new Error(`${name} has a path but no docs`)
    return [{ ...operation, http, docs, name, id: name.replaceAll('.', '-') }]
  })
  return [...operations, ...operations.filter(isForConsole).map(toManagerOperation)]
}

/** What a parent key may do with agents and files, a console user may do too; but uploading a form needs a key. */
function isForConsole({ http, auth, request }: RestOperation): boolean {
  const isTheirs = /^\/v1\/(agents|files)(\/|$)/.test(http.path) && auth.callers.includes('parent')
  return isTheirs && request?.upload === undefined
}

function toManagerOperation<D>(operation: RestOperation<D>): RestOperation<D> {
  const { path, method } = operation.http
  return {
    ...operation,
    http: { method, path: `/v1/manager${path.slice('/v1'.length)}` as const },
    tag: 'Manager',
    docs: {
      ...operation.docs,
      description: `The same as \`${method} ${path}\`, also for users of the console.`,
    },
    id: `manager-${operation.id}`,
  }
}

interface Routable {
  readonly http: Http
  readonly request?: { readonly takesRest?: true } | undefined
}

interface Pattern<O> {
  readonly segments: readonly string[]
  readonly takesRest: boolean
  readonly byMethod: Map<string, O>
}

/** Fixed paths in a map, patterns in a short list, those with more fixed segments first. */
export function createRouteTable<O extends Routable>(operations: readonly O[]) {
  const fixed = new Map<string, Map<string, O>>()
  const patterns = new Map<string, Pattern<O>>()
  for (const operation of operations) {
    const { path, method } = operation.http
    if (!path.includes('{')) {
      const byMethod = fixed.get(path) ?? new Map()
      fixed.set(path, byMethod.set(method, operation))
      continue
    }
    const takesRest = operation.request?.takesRest === true
    const pattern = patterns.get(path) ?? { segments: path.split('/'), takesRest, byMethod: new Map() }
    pattern.byMethod.set(method, operation)
    patterns.set(path, pattern)
  }
  const ordered = [...patterns.values()].sort((a, b) => countParams(a.segments) - countParams(b.segments))

  return {
    /** The operation of a request with its decoded path parameters; GET's answers HEAD. */
    match(method: string, path: string): { operation: O; params: Readonly<Record<string, string>> } {
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

function countParams(segments: readonly string[]): number {
  return segments.filter(isParam).length
}

function isParam(segment: string): boolean {
  return segment.startsWith('{')
}

function matchSegments(
  { segments: expected, takesRest }: Pattern<unknown>,
  segments: readonly string[],
): [string, string][] | undefined {
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

function choose<O>(byMethod: Map<string, O>, method: string): O {
  const operation = byMethod.get(method === 'HEAD' ? 'GET' : method)
  if (operation !== undefined) return operation
  const allow = [...byMethod.keys()]
  if (byMethod.has('GET')) allow.push('HEAD')
  throw new ServiceError('method_not_allowed', `${method} is not possible here, only ${allow.join(', ')}.`, {
    allow: [...allow, 'OPTIONS'],
  })
}
