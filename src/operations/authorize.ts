/** Authenticates the caller of a request and checks that this kind of caller may call. */
import { ServiceError } from '../lib/errors.ts'
import type { Dependencies, GuardedCall } from './dependencies.ts'
import type { AnyCaller, AuthPolicy, CallContext, CallerKind } from './operation.ts'
import { countRequest, limitAuthFailures } from './rate-limit.ts'

export type AccessStep = (call: GuardedCall) => Promise<void> | void

/** Step: finds the caller and sets `context.caller`. */
export async function authenticate({ context, auth }: GuardedCall): Promise<void> {
  if (auth === undefined || auth.callers.length === 0) return
  const caller = await findCaller(context)
  // Treats an artifact token as an invalid key where tokens are not accepted.
  const isUseless = caller?.kind === 'token' && !auth.callers.includes('token')
  if (caller === undefined || isUseless) return rejectCredentials(context)
  context.caller = caller
}

/** Step: checks the kind of the caller, and whether a user is signed in where one is needed. */
export function checkPermission({ context, auth }: GuardedCall): void {
  if (auth === undefined || auth.callers.length === 0) return
  const { caller } = context
  if (!auth.callers.includes(caller.kind)) throw rejectKind(auth)
  if (auth.needs !== undefined) assertUser(caller, auth.needs)
}

export function findCaller({
  deps,
  metadata,
}: CallContext<AnyCaller, Pick<Dependencies, 'authenticator'>>): Promise<AnyCaller | undefined> | undefined {
  return deps.authenticator.find(metadata)
}

/** Counts a call that matches no route against the limits of its key: it is still an authenticated request. */
export async function rateLimitUnmatchedRoute(context: CallContext<AnyCaller, Dependencies>): Promise<void> {
  const caller = await findCaller(context)
  if (caller !== undefined) await countRequest(context, caller)
}

/** Rejects a call without valid credentials; `messages` are the errors for missing and invalid ones. */
export async function rejectCredentials(
  context: CallContext<AnyCaller, Dependencies>,
  messages = keyMessages,
): Promise<never> {
  await limitAuthFailures(context)
  const { bearer, token } = context.metadata
  throw bearer === undefined && token === undefined
    ? new ServiceError('missing_api_key', messages.missing)
    : new ServiceError('invalid_api_key', messages.invalid)
}

const keyMessages = {
  missing: 'No API key was sent: use the header `Authorization: Bearer <key>`.',
  invalid: 'The API key is not valid.',
}

function rejectKind({ callers, wrongKind }: AuthPolicy): ServiceError {
  if (wrongKind !== undefined)
    return new ServiceError(wrongKind, 'This call needs a parent key; an agent key was sent.')
  const needed = callers.map((caller) => credentials[caller]).join(' or ')
  return new ServiceError('insufficient_permissions', `This call needs ${needed}.`)
}

const credentials: Readonly<Record<CallerKind, string>> = {
  parent: 'a parent key',
  agent: 'an agent key',
  token: 'a token for the artifact',
}

function assertUser(caller: AnyCaller, needs: 'user' | 'administrator'): void {
  const user = caller.kind === 'parent' ? caller.user : undefined
  if (user === undefined) {
    throw new ServiceError(
      'insufficient_permissions',
      'This call is for users who are signed in, not for keys.',
    )
  }
  if (needs === 'administrator' && !user.isAdministrator) {
    throw new ServiceError('insufficient_permissions', 'This call is for administrators only.')
  }
}
