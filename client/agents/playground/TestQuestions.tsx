/** Lists the saved test questions of an agent, and sends one on click. */

import { ActionIcon, Button, Group, Popover, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { Icon } from '../../shell/icons.tsx'
import { t } from '../../strings/language.ts'

interface TestQuestionsProps {
  readonly questions: readonly string[]
  readonly onChange: (questions: readonly string[]) => void
  readonly onAsk: (question: string) => void
}

export function TestQuestions({ questions, onChange, onAsk }: TestQuestionsProps) {
  const [isOpen, setIsOpen] = useState(false)
  const [text, setText] = useState('')
  const add = (event: FormEvent) => {
    event.preventDefault()
    const question = text.trim()
    if (question !== '' && !questions.includes(question)) onChange([...questions, question])
    setText('')
  }
  return (
    <Popover opened={isOpen} onChange={setIsOpen} position="bottom-end" width={340} trapFocus withinPortal>
      <Popover.Target>
        <Button variant="subtle" color="gray" size="compact-sm" onClick={() => setIsOpen(!isOpen)}>
          {t('trial.questions')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t('trial.questions')} p="sm">
        <Stack gap="xs">
          {questions.length === 0 ? (
            <Text size="xs" c="dimmed">
              {t('trial.questionsAbout')}
            </Text>
          ) : null}
          {questions.map((question) => (
            <Group key={question} gap={4} wrap="nowrap">
              <Button
                variant="default"
                size="compact-sm"
                flex={1}
                justify="flex-start"
                className="test-question"
                onClick={() => {
                  setIsOpen(false)
                  onAsk(question)
                }}
              >
                {question}
              </Button>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={t('trial.deleteQuestion', { question })}
                onClick={() => onChange(questions.filter((one) => one !== question))}
              >
                <Icon name="trash" size={14} />
              </ActionIcon>
            </Group>
          ))}
          <form onSubmit={add}>
            <Group gap="xs" wrap="nowrap">
              <TextInput
                aria-label={t('trial.newTestQuestion')}
                placeholder={t('trial.newQuestion')}
                size="xs"
                flex={1}
                value={text}
                onChange={(event) => setText(event.currentTarget.value)}
              />
              <Button type="submit" size="xs" variant="default">
                {t('trial.add')}
              </Button>
            </Group>
          </form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
