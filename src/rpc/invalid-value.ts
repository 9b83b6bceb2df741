/** Turns what zod found wrong into the one sentence a caller reads. */
import type { z } from 'zod'
import { ServiceError } from '../errors.ts'

/** The first thing wrong with an input, as `path: what`; `param` is the path. */
export function toInvalidValue(error: z.ZodError): ServiceError {
  const issue = mostSpecific(error.issues)
  const param = renderPath(issue.path)
  const problem = problemOf(issue)
  const message = param === '' ? problem : `${param}: ${problem}`
  return new ServiceError('invalid_value', message, param === '' ? {} : { param })
}

/** zod's own words, shorter, and plain about what is missing altogether. */
function problemOf({ message }: Issue): string {
  if (message.endsWith(', received undefined')) return 'is required'
  return message.replace(/^Invalid input: /, '')
}

type Issue = z.core.$ZodIssue

/** In a union the branch that got furthest names the field a caller must mend. */
function mostSpecific(issues: readonly Issue[]): Issue {
  const first = issues[0] as Issue
  if (first.code !== 'invalid_union' || first.errors.length === 0) return first
  const branches = first.errors.map((branch) => mostSpecific(branch))
  const deepest = branches.reduce((best, issue) => (issue.path.length > best.path.length ? issue : best))
  if (deepest.path.length > 0) return { ...deepest, path: [...first.path, ...deepest.path] }
  // A value that is too long is of the kind that its branch takes.
  const tooLong = branches.find(isTooLong)
  return tooLong === undefined ? first : { ...tooLong, path: first.path }
}

function isTooLong(issue: Issue): boolean {
  return issue.code === 'too_big' && ['array', 'string'].includes(issue.origin)
}

/** `messages[2].tool_call_id` */
export function renderPath(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) =>
      typeof step === 'number' ? `[${step}]` : index === 0 ? String(step) : `.${String(step)}`,
    )
    .join('')
}
