//! Asking the person at the terminal.

use std::io::{BufRead, Write};

use crate::{
    cli::{DONE, REFUSED, is_interactive, output, plan},
    planner::{
        Planner,
        confirm::{self, Asked, Inquiry},
        error::Error,
        show::view_of,
    },
    render::terminal,
    session::{
        Session,
        event::{Answer, Reply},
    },
    vocab::{Channel, SessionId},
};

/// Name of this client in confirmations.
pub const CLIENT: &str = concat!("quantplan ", env!("CARGO_PKG_VERSION"), " terminal");

/// `quantplan confirm`: the yes where a host cannot ask.
///
/// # Errors
///
/// When there is no such session, or the answer is no yes.
pub fn confirm(planner: &Planner, id: &SessionId) -> Result<u8, Error> {
    if !is_interactive() {
        complain!("error[NO_TERMINAL]: `quantplan confirm` asks a person and needs a terminal");
        complain!("hint: run it yourself in a terminal window; scripts use `quantplan plan --yes`");
        return Ok(REFUSED);
    }
    if planner.present(id)?.draft().questions.iter().any(|question| question.blocking) {
        let code = plan::answers(planner, id)?;
        if code != DONE {
            return Ok(code);
        }
    }
    let shown = planner.present(id)?;
    show(&shown);
    let arguments = confirm::Arguments { session_id: id.clone(), digest: shown.digest() };
    let asked = match planner.ask(&arguments, Channel::Terminal)? {
        Inquiry::Confirmed(reply) => {
            say!("\nThis table was confirmed already, at {}.", reply.confirmation.at);
            return Ok(DONE);
        }
        Inquiry::Ask(asked) => asked,
    };
    let word = word_of(&asked.nonce);
    say!("\nTo confirm this plan type the word {word}; anything else leaves it unconfirmed.");
    let typed = read_line("> ");
    let reply = if typed.as_deref() == Some(word.as_str()) { Reply::Yes } else { Reply::Declined };
    if reply == Reply::Declined {
        // A wrong word is a no of this person, who has seen the table.
        let _ = answer(planner, id, &asked, Reply::Changes);
        say!("Not confirmed. The session is kept: {id}");
        return Ok(REFUSED);
    }
    let reply = answer(planner, id, &asked, reply)?;
    say!("Confirmed. {}", reply.next);
    Ok(DONE)
}

/// Hands an answer from this terminal to the planner.
///
/// # Errors
///
/// When it is no yes.
pub fn answer(
    planner: &Planner,
    id: &SessionId,
    asked: &Asked,
    reply: Reply,
) -> Result<confirm::Reply, Error> {
    planner.answer(
        id,
        Answer {
            nonce: Some(asked.nonce.clone()),
            channel: Channel::Terminal,
            digest: asked.digest.clone(),
            reply,
            client: Some(CLIENT.to_owned()),
        },
    )
}

/// Prints the table of a session.
pub fn show(session: &Session) {
    put!("\n{}", terminal::render(&view_of(session), output::width()));
}

/// Reads a line; `None` at the end of the input.
pub fn read_line(prompt: &str) -> Option<String> {
    put!("{prompt}");
    let _ = std::io::stdout().flush();
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

/// A word that can be said and typed, from a nonce: four syllables.
fn word_of(nonce: &str) -> String {
    const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
    const VOWELS: &[u8] = b"aeiou";
    let bytes: Vec<u8> = nonce.bytes().skip(2).take(8).collect();
    bytes
        .iter()
        .enumerate()
        .map(|(i, byte)| {
            let letters = if i % 2 == 0 { CONSONANTS } else { VOWELS };
            char::from(letters[usize::from(*byte) % letters.len()])
        })
        .collect()
}
