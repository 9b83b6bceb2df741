/**
 * Checks whether a caller may upload or open an artifact, and creates the errors for callers that may not.
 */
import { ServiceError } from '../lib/errors.ts'
import type { ParentCaller, TokenCaller } from '../operations/operation.ts'
import type { ArtifactRow } from './store.ts'

export type ArtifactCaller = ParentCaller | TokenCaller

type Subject = Pick<ArtifactRow, 'id' | 'related_to'>

/** @throws ServiceError `insufficient_permissions` if the token was issued for a different use. */
export function assertTokenUse(caller: ArtifactCaller, use: 'upload' | 'view'): void {
  if (caller.kind === 'parent' || caller.use === use) return
  if (use === 'upload' && caller.use === 'attach') return
  throw new ServiceError('insufficient_permissions', `This request needs a token for ${uses[use]}.`)
}

const uses: Readonly<Record<'upload' | 'view', string>> = {
  upload: 'uploading the artifact',
  view: 'opening the artifact',
}

/**
 * Returns whether the caller may access the artifact, directly or, except for visitors, through `related_to`.
 * The artifact must belong to the caller's tenant.
 */
export function grantsAccess(caller: ArtifactCaller, { id, related_to }: Subject): boolean {
  if (caller.kind === 'parent' || caller.artifactId === id) return true
  return caller.use !== 'attach' && caller.artifactId === related_to
}

/**
 * Rejects a token that was issued for a different artifact. `found` is undefined if no artifact has this id.
 * @throws ServiceError `insufficient_permissions`
 */
export function assertAccess(caller: ArtifactCaller, id: string, found: Subject | undefined): void {
  if (!grantsAccess(caller, found ?? { id, related_to: null })) throw wrongArtifact()
}

/**
 * Prevents visitors from deleting uploads that are in their messages. @throws ServiceError
 * `insufficient_permissions`
 */
export function assertRemovable(
  caller: ArtifactCaller,
  { finished_at, expires_at }: Pick<ArtifactRow, 'finished_at' | 'expires_at'>,
): void {
  const isInMessage = finished_at !== null && expires_at === null
  if (caller.kind !== 'token' || caller.use !== 'attach' || !isInMessage) return
  throw new ServiceError('insufficient_permissions', 'The upload is in a message and cannot be deleted.')
}

export function wrongArtifact(): ServiceError {
  return new ServiceError('insufficient_permissions', 'This token was issued for a different artifact.')
}

export function artifactNotFound(): ServiceError {
  return new ServiceError('not_found', 'Artifact not found.')
}

export function leaseStolen(): ServiceError {
  return locked('Another request has taken over this upload.')
}

export function uploadDeleted(): ServiceError {
  return new ServiceError('not_found', 'The upload was deleted during this request.')
}

export function locked(message: string): ServiceError {
  return new ServiceError('locked', message, { retryAfterSeconds: 1 })
}
