/** Provides the menu of a page's further actions, next to its main button. */
import { ActionIcon, Menu } from '@mantine/core'
import type { ReactNode } from 'react'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'

/** Shows the button that opens the menu; the children are its items. */
export function MoreActions({ children }: { readonly children: ReactNode }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="default" size={36} aria-label={t('agents.moreActions')}>
          <Icon name="dots" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  )
}
