/** Lists all errors of a definition, although the server's check reports only the first. */
import type { DefinitionFormat, Outputs } from '../../api.ts'
import { api } from '../../api.ts'
import { readDefinition } from '../definition-text.ts'
import { type Path, withValue } from '../object-paths.ts'

export type Problem = NonNullable<Outputs['agents']['check']['problem']>

const MAX_CHECKS = 12

/** Valid items of the lists that do not accept every text. */
const validItems: Readonly<Record<string, string>> = {
  origins: 'https://example.com',
  imageHosts: 'images.example.com',
}

/**
 * Checks the text, then repeatedly repairs the value that has the error and checks the result. Only the first
 * problem has a line and a column. Returns an empty list for a valid definition.
 */
export async function listProblems(
  yaml: string,
  format: DefinitionFormat,
  signal: AbortSignal,
): Promise<readonly Problem[]> {
  const { problem: first } = await api.agents.check.mutate({ yaml, format }, { signal })
  if (first === null) return []
  const problems = [first]
  let rest: unknown = readDefinition(yaml, format)
  let path = first.path
  for (let checks = 1; checks < MAX_CHECKS && path !== null && rest !== undefined; checks++) {
    rest = repair(rest, parsePath(path))
    // Sends JSON, which is valid YAML.
    const { problem } = await api.agents.check.mutate({ yaml: JSON.stringify(rest) }, { signal })
    if (problem === null || problem.path === null) break
    if (problems.some((one) => one.path === problem.path)) break
    problems.push({ ...problem, message: describeProblem(problem), line: null, column: null })
    path = problem.path
  }
  return problems
}

/**
 * Removes the path and the position from the message, because the form shows the message next to the field.
 */
export function describeProblem({ message, path }: Pick<Problem, 'message' | 'path'>): string {
  const text = path !== null && message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message
  return text.replace(/ \(line \d+, column \d+\)$/, '')
}

/** Parses the server's notation, such as `tools[0].name`. */
function parsePath(text: string): Path {
  return [...text.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([key, index]) =>
    index === undefined ? key : Number(index),
  )
}

/** Removes the value at `path`, or replaces a required value or a list item with a valid one. */
function repair(whole: unknown, path: Path): unknown {
  const [root, second, third] = path
  if (root === 'tools' && typeof second === 'number') {
    if (third === 'inputSchema') return withValue(whole, ['tools', second, 'inputSchema'], undefined)
    return withValue(whole, path, third === 'description' ? undefined : `tool_without_error_${second}`)
  }
  if (root === 'name' || root === 'instructions') return withValue(whole, path, 'Valid')
  if (root === 'conversations' && second === 'keep') return withValue(whole, path, '30d')
  if (root === 'conversations' && second === 'notice') return withValue(whole, [root, second], undefined)
  if (typeof path.at(-1) === 'number') return withValue(whole, path, validItems[String(second)] ?? 'Valid')
  return withValue(whole, root === 'pageTools' ? [root] : path, undefined)
}
