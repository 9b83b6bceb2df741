/** Deletes turns and conversations with their data, and moves conversations to another tenant. */
import type { Dependencies } from '../dependencies.ts'
import type { ItemData } from '../inline-data/item-data.ts'
import { updateTitle } from '../item-store.ts'
import { deleteTurn, type TurnRow } from '../store.ts'
import type { StorageQuota } from '../turns/quota.ts'
import { prepareDeletion } from '../webhooks/events.ts'
import { deleteAgentConversations } from './maintenance.ts'
import { deleteNow, moveConversations } from './rows.ts'

type DeletionDependencies = Pick<
  Dependencies,
  'storage' | 'clock' | 'log' | 'webhooks' | 'forgetSpending'
> & {
  readonly data: ItemData
  readonly quota: StorageQuota
}

export class Deletions {
  private readonly deps: DeletionDependencies

  constructor(deps: DeletionDependencies) {
    this.deps = deps
  }

  /** Deletes a turn that does not run. */
  async deleteTurn(turn: TurnRow): Promise<void> {
    const { storage, data, quota } = this.deps
    const { write, scrub } = await storage.open()
    await write.transaction().execute(async (trx) => {
      await deleteTurn(trx, turn)
      await updateTitle(trx, turn.conversation_id)
    })
    await data.dropDeleted()
    await scrub()
    quota.forget()
  }

  /** Deletes a conversation whose turns do not run. */
  async deleteConversation(id: string): Promise<void> {
    const { storage, data, quota, webhooks, forgetSpending } = this.deps
    const { write, scrub } = await storage.open()
    await forgetSpending('conversation', [id])
    await deleteNow(write, [id], await prepareDeletion(webhooks, 'deleted'))
    await data.dropDeleted()
    await scrub()
    quota.forget()
  }

  /** Deletes the conversations of a deleted agent. After a failure, maintenance deletes them. */
  async deleteOfAgent(tenantId: string, agentId: string): Promise<void> {
    const { storage, quota, log } = this.deps
    try {
      const database = await storage.find()
      if (database === undefined) return
      await deleteAgentConversations(database, this.deps, { tenant: tenantId, agentId })
      quota.forget()
    } catch (error) {
      log.warn(
        { err: error, agentId },
        'could not delete the conversations of a deleted agent; maintenance will retry',
      )
    }
  }

  /** Moves all conversations of a tenant to another, and returns their number. */
  async moveTenant(from: string, to: string): Promise<number> {
    const { storage, quota } = this.deps
    const database = await storage.find()
    const moved = await database?.write.transaction().execute((trx) => moveConversations(trx, from, to))
    quota.forget()
    return moved ?? 0
  }
}
