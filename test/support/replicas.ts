/** Starts replicas that share a database, a secret and a key. */
import { randomBytes } from 'node:crypto'
import type { ServiceOptions } from '../../src/server/build.ts'
import { startApp, type TestApp } from './app.ts'
import { forgeKey } from './forge-key.ts'
import { createTestDatabase } from './postgres.ts'
import { RawConnection, toRequest } from './raw-connection.ts'
import { startRedis } from './redis.ts'
import { BODY_TYPE, type CreatedUpload } from './uploads.ts'

/** The stores that replicas can use for coordination. */
export const sharedStores = ['Redis', 'PostgreSQL'] as const
export type SharedStore = (typeof sharedStores)[number]

/** Creates a database; returns the settings that all replicas share. */
export async function createReplicaSettings(store: SharedStore): Promise<Record<string, string>> {
  return {
    DATABASE_URL: await createTestDatabase(),
    PARLEY_SECRET: 'the secret that all replicas share',
    PARLEY_PARENT_KEY: forgeKey('svc_', randomBytes(55).toString('hex').slice(0, 55)),
    ...(store === 'Redis' ? { REDIS_URL: (await startRedis()).url } : {}),
  }
}

export async function startReplicas(
  env: Readonly<Record<string, string>>,
  options: Omit<ServiceOptions, 'config'> = {},
): Promise<[TestApp, TestApp]> {
  const first = await startApp(env, options)
  return [first, await startApp(env, options)]
}

/** Sends concurrent requests to the replicas in turn; returns the number of responses by status. */
export async function callRoundRobin(
  apps: readonly TestApp[],
  calls: number,
  call: (app: TestApp) => Promise<{ readonly status: number }>,
): Promise<Record<number, number>> {
  const answers = await Promise.all(
    Array.from({ length: calls }, (_, turn) => call(apps[turn % apps.length] as TestApp)),
  )
  return countStatuses(answers)
}

export function countStatuses(answers: readonly { readonly status: number }[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** Sends a PATCH request with only part of its body. */
export async function stallPatch(
  { url, key }: Pick<TestApp, 'url' | 'key'>,
  { location }: CreatedUpload,
  bytes: Buffer,
): Promise<RawConnection> {
  const connection = await RawConnection.open({ url })
  const head = ['Host: x', `Authorization: Bearer ${key}`, 'Tus-Resumable: 1.0.0', 'Upload-Offset: 0']
  const body = [`Content-Type: ${BODY_TYPE}`, 'Content-Length: 1000']
  connection.send(toRequest(`PATCH ${location}`, [...head, ...body]))
  connection.send(bytes)
  return connection
}
