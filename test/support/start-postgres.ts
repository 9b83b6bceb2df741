/** Starts the PostgreSQL server that all tests of a run share. */
import type { TestProject } from 'vitest/node'
import { createTemplate, startPostgres } from './postgres.ts'

/** Vitest's global setup function; returns the teardown function. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres()
  try {
    await createTemplate(server)
  } catch (error) {
    await server.remove()
    throw error
  }
  project.provide('postgresUrl', server.urlOf('postgres'))
  return () => server.remove()
}
