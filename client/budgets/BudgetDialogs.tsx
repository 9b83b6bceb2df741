/** Shows the dialogs for one budget, and the menu items that open them. */
import { Menu } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../api.ts'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { showDone } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { t } from '../strings/language.ts'
import { callsOf } from './BudgetFigures.tsx'
import { EditBudget } from './BudgetForm.tsx'
import { EntryForm } from './EntryForm.tsx'
import { type Budget, refreshBudgets } from './queries.ts'

export interface Doing {
  readonly what: 'edit' | 'raise' | 'correct' | 'delete'
  readonly budget: Budget
  /** Pseudonym of a visitor or conversation. */
  readonly subject?: string
}

interface BudgetMenuItemsProps {
  readonly budget: Budget
  readonly setDoing: (doing: Doing) => void
}

/** Raises and corrections need a subject for budgets of visitors and conversations, so their table has them. */
export function BudgetMenuItems({ budget, setDoing }: BudgetMenuItemsProps) {
  const { id, scope, managed_by: manager, booked } = budget
  const { is_administrator: isAdministrator } = useMe()
  return (
    <>
      <Menu.Item renderRoot={(props) => <Link to="/usage" search={callsOf(budget)} {...props} />}>
        {t('budgets.viewCalls')}
      </Menu.Item>
      {scope.type === 'key' ? null : (
        <Menu.Item
          renderRoot={(props) => <Link to="/agents/$agentId" params={{ agentId: scope.id }} {...props} />}
        >
          {t('budgets.viewAgent')}
        </Menu.Item>
      )}
      {manager === 'tenant' ? (
        <Menu.Item onClick={() => setDoing({ what: 'edit', budget })}>{t('budgets.editMenu')}</Menu.Item>
      ) : null}
      {booked === null ? null : <EntryMenuItems budget={budget} setDoing={setDoing} />}
      {isAdministrator ? (
        <Menu.Item
          renderRoot={(props) => <Link to="/admin" search={{ tab: 'audit', target: id }} {...props} />}
        >
          {t('admin.viewAuditLog')}
        </Menu.Item>
      ) : null}
      {manager === 'tenant' ? (
        <Menu.Item className="danger-text" onClick={() => setDoing({ what: 'delete', budget })}>
          {t('budgets.deleteMenu')}
        </Menu.Item>
      ) : null}
    </>
  )
}

interface EntryMenuItemsProps extends BudgetMenuItemsProps {
  readonly subject?: string
}

export function EntryMenuItems({ budget, subject, setDoing }: EntryMenuItemsProps) {
  if (budget.managed_by === 'operator') return null
  const of = { budget, ...(subject === undefined ? {} : { subject }) }
  return (
    <>
      <Menu.Item onClick={() => setDoing({ what: 'raise', ...of })}>{t('budgets.raiseMenu')}</Menu.Item>
      <Menu.Item onClick={() => setDoing({ what: 'correct', ...of })}>{t('budgets.correctMenu')}</Menu.Item>
    </>
  )
}

interface BudgetDialogsProps {
  readonly doing: Doing | undefined
  readonly onClose: () => void
  /** Called before the lists are loaded again. */
  readonly onDeleted?: () => Promise<void>
}

export function BudgetDialogs({ doing, onClose, onDeleted }: BudgetDialogsProps) {
  const queries = useQueryClient()
  const { what, budget, subject } = doing ?? {}
  const remove = async (id: string) => {
    await api.budgets.delete.mutate({ budget_id: id })
    await onDeleted?.()
    queries.removeQueries({ queryKey: ['budgets', 'one', id] })
    await refreshBudgets(queries)
    showDone(t('budgets.deleted'))
  }
  return (
    <>
      <Dialog title={t('budgets.edit')} isOpen={what === 'edit'} onClose={onClose}>
        {budget === undefined ? null : <EditBudget budget={budget} onClose={onClose} />}
      </Dialog>
      {(['raise', 'correct'] as const).map((kind) => (
        <Dialog key={kind} title={t(`budgets.${kind}`)} isOpen={what === kind} onClose={onClose}>
          {budget === undefined ? null : (
            <EntryForm kind={kind} budget={budget} subject={subject} onClose={onClose} />
          )}
        </Dialog>
      ))}
      <ConfirmDialog
        title={t('budgets.delete')}
        isOpen={what === 'delete'}
        onClose={onClose}
        onConfirm={async () => {
          if (budget !== undefined) await remove(budget.id)
        }}
        action={t('budgets.delete')}
        isDangerous
      >
        {t('budgets.deleteHelp')}
      </ConfirmDialog>
    </>
  )
}
