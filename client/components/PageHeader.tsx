/** Shows a page's title, description and actions. */
import { Group, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { useEffect } from 'react'
import { setPageTitle } from '../shell/document-title.ts'

interface PageHeaderProps {
  readonly title: string
  readonly about?: ReactNode
  readonly children?: ReactNode
  /** Reduces the margin above tabs. */
  readonly isTight?: boolean
}

/** Shows the header and sets the document title. */
export function PageHeader({ title, about, children, isTight = false }: PageHeaderProps) {
  useTitle(title)
  return (
    <Group justify="space-between" align="flex-start" mb={isTight ? 4 : 'lg'} gap="sm">
      <Stack gap={2}>
        <Title order={1}>{title}</Title>
        {about === undefined ? null : (
          <Text c="dimmed" size="sm" maw={640}>
            {about}
          </Text>
        )}
      </Stack>
      {children === undefined ? null : <Group gap="xs">{children}</Group>}
    </Group>
  )
}

export function useTitle(title: string): void {
  useEffect(() => {
    setPageTitle(title)
  }, [title])
}
