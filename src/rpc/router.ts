/** The table of contents: every operation of the service, by room and verb. */
import { adminRouter } from '../admin/procedures.ts'
import { agentsRouter } from '../agents/procedures.ts'
import { artifactsRouter } from '../artifacts/procedures.ts'
import { chatRouter } from '../chat/procedures.ts'
import { managerRouter } from '../console/procedures.ts'
import { embeddingsRouter } from '../embeddings/procedures.ts'
import { filesRouter } from '../files/procedures.ts'
import { keysRouter } from '../keys/procedures.ts'
import { modelsRouter } from '../models/procedures.ts'
import { responsesRouter } from '../responses/procedures.ts'
import { usageRouter } from '../usage/procedures.ts'
import type { AnyOperation, OperationMeta } from './op.ts'
import { router } from './trpc.ts'

export const appRouter = router({
  admin: adminRouter,
  agents: agentsRouter,
  artifacts: artifactsRouter,
  chat: chatRouter,
  files: filesRouter,
  embeddings: embeddingsRouter,
  keys: keysRouter,
  manager: managerRouter,
  models: modelsRouter,
  responses: responsesRouter,
  usage: usageRouter,
})

/** What a typed client is made from. */
export type AppRouter = typeof appRouter

/** Every operation with its procedure's path (`agents.create`), in the order of the table. */
export function listOperations(): { name: string; operation: AnyOperation }[] {
  return Object.entries(appRouter._def.procedures).map(([name, procedure]) => {
    const { meta } = (procedure as unknown as { _def: { meta: OperationMeta } })._def
    return { name, operation: meta.operation }
  })
}
