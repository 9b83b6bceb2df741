/** Runs once before all tests: starts one PostgreSQL server on which each test gets its own databases. */
import type { TestProject } from 'vitest/node'
import { createTemplate, startPostgres } from './postgres.ts'

/** The entry point that vitest calls; vitest calls the returned function at the end. */
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
