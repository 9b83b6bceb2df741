/** What is done with keys, and what the pages have to ask for again afterwards. */
import { useQueryClient } from '@tanstack/react-query'
import { api } from '../api.ts'

/** A key that was just made, or got a new secret. */
export interface NewKey {
  readonly key: string
  /** Unix seconds until which the secret before it keeps working. */
  readonly previousValidUntil?: number
}

/** Nearly everything on the pages belongs to a key, so all of it is asked for again. */
export function useAfterwards(): () => Promise<void> {
  const queries = useQueryClient()
  return () => queries.invalidateQueries()
}

export async function createKey(name: string): Promise<NewKey> {
  return { key: (await api.manager.createKey.mutate({ name })).key }
}

/** The secret before it works for that many seconds more. */
export async function rotateParentKey(id: string, overlapSeconds: number): Promise<NewKey> {
  const answer = await api.manager.rotateKey.mutate({ parent_key_id: id, overlap_seconds: overlapSeconds })
  return { key: answer.key, previousValidUntil: answer.previous_valid_until }
}

/** The secret before it works for that many seconds more. */
export async function rotateAgentKey(id: string, overlapSeconds: number): Promise<NewKey> {
  const answer = await api.agents.rotateKey.mutate({ agent_id: id, overlap_seconds: overlapSeconds })
  return { key: answer.agent_key, previousValidUntil: answer.previous_valid_until }
}

export function revokeKey(id: string) {
  return api.manager.revokeKey.mutate({ parent_key_id: id })
}

export function previewClaim(key: string) {
  return api.manager.previewClaim.mutate({ parent_key: key })
}

export function claimKey(key: string) {
  return api.manager.claimKey.mutate({ parent_key: key })
}

export type ClaimPreview = Awaited<ReturnType<typeof previewClaim>>
