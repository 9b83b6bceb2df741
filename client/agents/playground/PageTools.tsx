/** Edits the page tools that a trial offers to the agent; the tester answers their calls. */

import { Button, Checkbox, Group, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { MockTool } from '../../../widget/frame/trial/messages.ts'
import { Dialog } from '../../components/Dialog.tsx'
import { t } from '../../strings/language.ts'
import { isRecord } from '../object-paths.ts'
import type { WrittenTool } from './stored-tests.ts'

interface PageToolsProps {
  readonly tools: readonly WrittenTool[]
  readonly onChange: (tools: readonly WrittenTool[]) => void
}

const newTool: WrittenTool = { name: '', description: '', parameters: '{"type": "object"}', isAsked: false }

export function PageToolsButton({ tools, onChange }: PageToolsProps) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button variant="subtle" color="gray" size="compact-sm" onClick={() => setIsOpen(true)}>
        {tools.length === 0 ? t('editor.pageTools') : t('trial.pageToolsCount', { number: tools.length })}
      </Button>
      <Dialog title={t('editor.pageTools')} isOpen={isOpen} onClose={() => setIsOpen(false)} size="lg">
        <Stack gap="md">
          <Text size="sm">{t('trial.pageToolsAbout')}</Text>
          {tools.map((tool, index) => (
            <ToolForm
              // biome-ignore lint/suspicious/noArrayIndexKey: a tool has no other identity while its name changes
              key={index}
              tool={tool}
              onChange={(changed) => onChange(tools.with(index, changed))}
              onRemove={() => onChange(tools.toSpliced(index, 1))}
            />
          ))}
          <Group justify="space-between">
            <Button variant="default" size="xs" onClick={() => onChange([...tools, newTool])}>
              {t('trial.addPageTool')}
            </Button>
            <Button size="xs" onClick={() => setIsOpen(false)}>
              {t('common.done')}
            </Button>
          </Group>
        </Stack>
      </Dialog>
    </>
  )
}

interface ToolFormProps {
  readonly tool: WrittenTool
  readonly onChange: (tool: WrittenTool) => void
  readonly onRemove: () => void
}

const toolName = /^[A-Za-z0-9_-]{1,52}$/

function ToolForm({ tool, onChange, onRemove }: ToolFormProps) {
  const { name, description, parameters, isAsked } = tool
  return (
    <Stack gap="xs" className="panel" p="sm" component="section" aria-label={t('trial.pageTool', { name })}>
      <TextInput
        label={t('trial.toolName')}
        placeholder="add_to_cart"
        value={name}
        error={name === '' || toolName.test(name) ? undefined : t('trial.toolNameRule')}
        onChange={(event) => onChange({ ...tool, name: event.currentTarget.value })}
      />
      <TextInput
        label={t('editor.description')}
        value={description}
        onChange={(event) => onChange({ ...tool, description: event.currentTarget.value })}
      />
      <Textarea
        label={t('trial.parameters')}
        autosize
        minRows={2}
        maxRows={10}
        classNames={{ input: 'code-input' }}
        value={parameters}
        error={readSchema(parameters) === undefined ? t('trial.parametersRule') : undefined}
        onChange={(event) => onChange({ ...tool, parameters: event.currentTarget.value })}
      />
      <Group justify="space-between">
        <Checkbox
          label={t('trial.mustAllow')}
          checked={isAsked}
          onChange={(event) => onChange({ ...tool, isAsked: event.currentTarget.checked })}
        />
        <Button variant="subtle" color="red" size="xs" onClick={onRemove}>
          {t('trial.remove')}
        </Button>
      </Group>
    </Stack>
  )
}

function readSchema(text: string): MockTool['inputSchema'] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) && value.type === 'object' ? { ...value, type: 'object' } : undefined
  } catch {
    return undefined
  }
}

/** Returns the valid tools in the frame's format. */
export function toMockTools(tools: readonly WrittenTool[]): MockTool[] {
  const names = new Set<string>()
  return tools.flatMap(({ name, description, parameters, isAsked }) => {
    const inputSchema = readSchema(parameters)
    if (inputSchema === undefined || !toolName.test(name) || names.has(name)) return []
    names.add(name)
    return [
      {
        name: `postMessage_${name}`,
        ...(description === '' ? {} : { description }),
        inputSchema,
        ...(isAsked ? { annotations: { destructiveHint: true } } : {}),
      },
    ]
  })
}
